import ExecuTorchLLM
import SwiftUI

/// Answers one question with the model in the app's bundle.
@main
struct AssistantApp: App {
  var body: some Scene {
    WindowGroup { AnswerView(question: "What is the capital of France?") }
  }
}

struct AnswerView: View {
  let question: String
  @State private var answer = ""

  var body: some View {
    Text(answer)
      .padding()
      .task {
        for await piece in pieces(of: question) { answer += piece }
      }
  }

  /// The answer, piece by piece. The program is mapped from the bundle, not copied.
  private func pieces(of question: String) -> AsyncStream<String> {
    AsyncStream { stream in
      Task.detached {
        defer { stream.finish() }
        guard
          let model = Bundle.main.path(forResource: "model", ofType: "pte"),
          let tokenizer = Bundle.main.path(forResource: "tokenizer", ofType: "json")
        else {
          stream.yield("The bundle has no model.")
          return
        }
        do {
          let runner = TextRunner(modelPath: model, tokenizerPath: tokenizer)
          try runner.load()
          try runner.generate(question, Config { $0.sequenceLength = 32 }) { stream.yield($0) }
        } catch {
          stream.yield(error.localizedDescription)
        }
      }
    }
  }
}
