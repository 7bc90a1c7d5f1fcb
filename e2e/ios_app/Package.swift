// swift-tools-version: 5.9

import PackageDescription

let package = Package(
  name: "Assistant",
  dependencies: [
    .package(url: "https://github.com/pytorch/executorch.git", branch: "swiftpm-1.5.1")
  ]
)
