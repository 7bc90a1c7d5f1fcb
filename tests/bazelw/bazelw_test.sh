#!/usr/bin/env bash
# Tests bazelw and its prefix builder without network: with a PATH made for each case and steps of the builder replaced.
# Runs as a Bazel test and by itself.

set -uo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
temp=$(mktemp -d)
trap 'rm -rf -- "$temp"' EXIT
failures=0 case_name=

# A copy, because under Bazel the files are links to the source tree, where bazelw would find its builder.
mkdir -p "$temp/repo/tools/closed_network/bazel_prefix"
cp -L "$repo/bazelw" "$temp/repo/bazelw"
cp -L "$repo"/tools/closed_network/bazel_prefix/{prefix.sh,version,PrefixTool.java} "$temp/repo/tools/closed_network/bazel_prefix/"
bazelw=$temp/repo/bazelw
builder=$temp/repo/tools/closed_network/bazel_prefix/prefix.sh
version=$(<"$temp/repo/tools/closed_network/bazel_prefix/version")

# A PATH of nothing but what the scripts say they need, so that this machine's Bazel and apt stay out of the cases.
mkdir "$temp/base"
for tool in awk bash cat chmod cut dirname env find flock grep head ln mkdir mv readlink rm sed sleep sort tail tar tr uname; do
  ln -s "$(type -P "$tool")" "$temp/base/$tool"
done

begin() { case_name=$1; }
wrong() {
  printf 'FAILED: %s\n%s\n' "$case_name" "$*"
  failures=$((failures + 1))
}
expect_eq() { [[ $1 == "$2" ]] || wrong "$(printf 'expected: %q\n     got: %q' "$1" "$2")"; }
expect_has() { [[ $2 == *"$1"* ]] || wrong "$(printf 'expected to find: %s\n            in: %s' "$1" "$2")"; }
expect_none() { [[ ! -e $1 ]] || wrong "'$1' was left behind"; }

# fake DIR NAME BODY: a program.
fake() {
  mkdir -p "$1"
  printf '#!/usr/bin/env bash\n%s\n' "$3" >"$1/$2"
  chmod +x "$1/$2"
}

fake_bazel() { fake "$1" "$2" "[[ \$* == --version ]] && { echo '$3'; exit; }; printf '%s' '$2'; printf ' <%s>' \"\$@\""; }

# Calls bazelw with the folders given first on PATH and "ready" a prefix that is there already.
call() {
  local path=$1
  shift
  out=$(env -i PATH="${path:+$path:}$temp/base" HOME="$temp/home" RULES_EXECUTORCH_CACHE="$temp/ready" "$@" 2>"$temp/err")
  status=$?
  err=$(<"$temp/err")
}

ready=$temp/ready/bazel/v$version-$HOSTTYPE
fake_bazel "$ready" bazel 'bazel 7.7.1'
sed -i 's/bazel'\''; printf/prefix'\''; printf/' "$ready/bazel"
: >"$ready/truststore"
touch -d '+1 day' "$ready/truststore"
fake_bazel "$temp/isk" bazelisk 'bazel 8.0.0'
fake_bazel "$temp/new" bazel 'bazel 7.6.0'

test_order() {
  begin "bazelisk comes before bazel"
  call "$temp/new:$temp/isk" "$bazelw" build //...
  expect_eq "bazelisk <build> <//...>" "$out"

  begin "a new enough bazel gets the arguments as they are"
  call "$temp/new" "$bazelw" run //a:b -- 'two words' '' '*'
  expect_eq "bazel <run> <//a:b> <--> <two words> <> <*>" "$out"
  expect_eq "" "$err"

  local text
  for text in 'bazel 7.6.0' 'bazel 7.10.1' 'bazel 8.0.0rc1' 'bazel 10.0.0' 'bazel 7.7.1- (@non-git)'; do
    begin "'$text' is new enough"
    fake_bazel "$temp/some" bazel "$text"
    call "$temp/some" "$bazelw" x
    expect_eq "bazel <x>" "$out"
  done
  for text in 'bazel 4.2.3' 'bazel 7.5.9' 'bazel no_version' '' 'Bazelisk version: 1.2'; do
    begin "'$text' is not new enough"
    fake_bazel "$temp/some" bazel "$text"
    call "$temp/some" "$bazelw" x
    expect_eq "prefix <x>" "$out"
    expect_eq "" "$err"
  done

  begin "a bazel that fails is passed over"
  fake "$temp/some" bazel 'exit 1'
  call "$temp/some" "$bazelw" x
  expect_eq "prefix <x>" "$out"

  begin "a link of the name bazel to bazelw does not call itself"
  mkdir "$temp/self"
  ln -s "$bazelw" "$temp/self/bazel"
  call "$temp/self" bazel x
  expect_eq "prefix <x>" "$out"

  begin "works from another folder and by a relative path"
  mkdir -p "$temp/repo/e2e/app"
  out=$(cd "$temp/repo/e2e/app" && env -i PATH="$temp/base" RULES_EXECUTORCH_CACHE="$temp/ready" ../../bazelw x 2>&1)
  expect_eq "prefix <x>" "$out"

  begin "the exit code of Bazel is that of bazelw"
  fake "$temp/seven" bazel '[[ $* == --version ]] && { echo bazel 7.7.1; exit; }; exit 7'
  call "$temp/seven" "$bazelw" build
  expect_eq 7 "$status"
}

test_override() {
  begin "the override comes before everything"
  fake "$temp/own" mine 'printf mine; printf " <%s>" "$@"'
  call "$temp/new:$temp/isk" BAZELW_BAZEL="$temp/own/mine" "$bazelw" build
  expect_eq "mine <build>" "$out"

  begin "the word prefix passes over what is on PATH"
  call "$temp/new:$temp/isk" BAZELW_BAZEL=prefix "$bazelw" build
  expect_eq "prefix <build>" "$out"

  local bad
  for bad in "$temp/own/absent" "$temp/own" /etc/passwd; do
    begin "the override '$bad' is refused"
    call "$temp/new" BAZELW_BAZEL="$bad" "$bazelw" build
    expect_eq 1 "$status"
    expect_eq "" "$out"
    expect_has "BAZELW_BAZEL names '$bad', which is not an executable file. Set it to" "$err"
  done

  begin "bazelw as its own override is refused"
  call "" BAZELW_BAZEL="$bazelw" "$bazelw" build
  expect_eq 1 "$status"
  expect_has "names bazelw itself" "$err"
}

test_cache_folder() {
  local key=bazel/v$version-$HOSTTYPE
  fake "$temp/xdg/rules_executorch/$key" bazel 'echo xdg'
  fake "$temp/home/.cache/rules_executorch/$key" bazel 'echo home'
  touch -d '+1 day' "$temp/xdg/rules_executorch/$key/truststore" "$temp/home/.cache/rules_executorch/$key/truststore"

  begin "XDG_CACHE_HOME comes before HOME, and RULES_EXECUTORCH_CACHE before both"
  call "" XDG_CACHE_HOME="$temp/xdg" "$bazelw"
  expect_eq "prefix <>" "$out"
  call "" RULES_EXECUTORCH_CACHE= XDG_CACHE_HOME="$temp/xdg" "$bazelw"
  expect_eq "xdg" "$out"
  call "" RULES_EXECUTORCH_CACHE= XDG_CACHE_HOME= "$bazelw"
  expect_eq "home" "$out"
}

# A builder into $1 whose steps that need the network or Debian are replaced; $2 is code that replaces more. A program and
# not a function, so that a signal meets the builder itself and not a shell around it.
cat >"$temp/fake_build" <<'EOF'
#!/usr/bin/env bash
source "$BUILDER"
write_apt_config() { mkdir -p "$download"; }
read_index() { :; }
fetch_packages() {
  echo >>"$COUNT"
  echo >"$download/package"
  sleep 1
}
unpack_packages() {
  mkdir -p "$root/usr/lib/jvm/java-25-openjdk-$deb_arch/bin" "$root/usr/share/bazel"
  ln -s "$(type -P bash)" "$root/usr/lib/jvm/java-25-openjdk-$deb_arch/bin/java"
  echo 7.7.1 >"$root/usr/share/bazel/build-label.txt"
}
run_java() { :; }
write_truststore() { : >"$2"; }
patch_programs() { :; }
try_it() { :; }
eval "${2-}"
build "$1"
EOF
chmod +x "$temp/fake_build"
fake_build=(env -i PATH="$temp/apt:$temp/base" COUNT="$temp/count" BUILDER="$builder" "$temp/fake_build")

for tool in apt-get apt-cache apt-config dpkg dpkg-deb; do
  fake "$temp/apt" "$tool" 'exit 0'
done

test_concurrent() {
  begin "two calls at once build once"
  local prefix=$temp/two/bazel/v1
  : >"$temp/count"
  "${fake_build[@]}" "$prefix" 2>"$temp/err1" &
  local first=$!
  sleep 0.4
  "${fake_build[@]}" "$prefix" 2>"$temp/err2"
  expect_eq 0 $?
  wait "$first"
  expect_eq 0 $?
  expect_eq 1 "$(grep -c '' "$temp/count")"
  expect_has "another call is preparing Bazel" "$(<"$temp/err2")"
  expect_has "Bazel 7.7.1 is ready" "$(<"$temp/err1")"
  [[ -x $prefix/bazel ]] || wrong "no $prefix/bazel"
  expect_none "$prefix.work"
  expect_none "$prefix.new"
  expect_none "$prefix.download"
}

test_interrupted() {
  local signal prefix pid status
  for signal in INT TERM KILL; do
    begin "interrupted by $signal"
    prefix=$temp/$signal/bazel/v1
    # With job control, or the background process would ignore INT.
    set -m
    "${fake_build[@]}" "$prefix" 2>/dev/null &
    pid=$!
    set +m
    for _ in {1..50}; do
      [[ ! -e $prefix.download/package ]] || break
      sleep 0.1
    done
    kill -s "$signal" -- "-$pid"
    wait "$pid" 2>/dev/null
    status=$?
    case $signal in
      INT) expect_eq 130 "$status" ;;
      TERM) expect_eq 143 "$status" ;;
    esac
    expect_none "$prefix/bazel"
    if [[ $signal != KILL ]]; then
      expect_none "$prefix.work"
      expect_none "$prefix.new"
    fi
    [[ -e $prefix.download/package ]] || wrong "the download was not kept"
    "${fake_build[@]}" "$prefix" 2>/dev/null
    expect_eq 0 $?
    [[ -x $prefix/bazel ]] || wrong "the next call did not build it"
    expect_none "$prefix.work"
    expect_none "$prefix.new"
  done
}

test_failed_step() {
  begin "a Bazel that does not start is not called ready"
  local prefix=$temp/broken/bazel/v1
  "${fake_build[@]}" "$prefix" 'try_it() { fail "it does not start"; }' 2>"$temp/err"
  expect_eq 1 $?
  expect_none "$prefix/bazel"
  expect_none "$prefix.work"
}

# Runs the real builder with the given folders on PATH.
build_with() {
  err=$(env -i PATH="$1:$temp/base" "${@:2}" 2>&1 >/dev/null)
  status=$?
}

test_refusals() {
  begin "an architecture Debian has no Bazel for"
  fake "$temp/arch" uname '[[ $1 == -m ]] && echo riscv64 || echo Linux'
  build_with "$temp/arch:$temp/apt" "$builder" build "$temp/no/bazel/v1"
  expect_eq 1 "$status"
  expect_has "Debian has no Bazel for this machine (Linux riscv64)" "$err"
  expect_has "Put bazelisk, or a bazel of at least 7.6, on PATH or name one in BAZELW_BAZEL." "$err"

  begin "not Linux"
  fake "$temp/mac" uname '[[ $1 == -m ]] && echo arm64 || echo Darwin'
  build_with "$temp/mac" "$builder" build "$temp/no/bazel/v1"
  expect_eq 1 "$status"
  expect_has "(Darwin arm64)" "$err"

  begin "no apt"
  fake "$temp/x86" uname 'echo x86_64'
  build_with "$temp/x86" "$builder" build "$temp/no/bazel/v1"
  expect_eq 1 "$status"
  expect_has "'apt-get' is missing, so this is not Debian" "$err"
  expect_none "$temp/no"

  begin "the bazel that was passed over is named before a build"
  fake_bazel "$temp/some" bazel 'bazel 4.2.3'
  build_with "$temp/some:$temp/x86" RULES_EXECUTORCH_CACHE="$temp/no" "$bazelw" version
  expect_eq 1 "$status"
  expect_has "$temp/some/bazel says 'bazel 4.2.3' and at least 7.6 is needed" "$err"

  begin "a path that cannot stand in a list of paths"
  build_with "$temp/apt:$temp/x86" "$builder" build "$temp/a b/v1"
  expect_eq 1 "$status"
  expect_has "Set RULES_EXECUTORCH_CACHE to another folder" "$err"

  begin "a folder that cannot be written"
  build_with "$temp/apt:$temp/x86" "$builder" build /proc/no/bazel/v1
  expect_eq 1 "$status"
  expect_has "'/proc/no/bazel' cannot be written" "$err"

  begin "an age that is no number"
  build_with "$temp/apt:$temp/x86" BAZELW_INDEX_MAX_AGE_DAYS=soon "$builder" build "$temp/no/bazel/v1"
  expect_eq 1 "$status"
  expect_has "BAZELW_INDEX_MAX_AGE_DAYS is 'soon'" "$err"

  mkdir -p "$temp/etc/parts"
  fake "$temp/sources" apt-config "echo \"source_list='$temp/etc/sources.list'\"; echo \"source_parts='$temp/etc/parts'\""

  begin "no source of packages"
  build_with "$temp/sources:$temp/apt:$temp/x86" "$builder" build "$temp/none/bazel/v1"
  expect_eq 1 "$status"
  expect_has "No source of Debian packages is enabled in $temp/etc/sources.list" "$err"
  expect_none "$temp/none/bazel/v1.work"

  echo "deb http://mirror.test/debian bookworm main" >"$temp/etc/sources.list"

  begin "no network"
  fake "$temp/offline" apt-get 'echo "E: Could not resolve mirror.test"; exit 100'
  build_with "$temp/offline:$temp/sources:$temp/apt:$temp/x86" "$builder" build "$temp/none/bazel/v1"
  expect_eq 1 "$status"
  expect_has "apt says: E: Could not resolve mirror.test. E: Could" "$err"
  expect_has "Check the network" "$err"

  begin "an index that is too old"
  fake "$temp/stale" apt-get 'echo "E: Release file for mirror.test is expired (invalid since 900d)."; exit 100'
  build_with "$temp/stale:$temp/sources:$temp/apt:$temp/x86" "$builder" build "$temp/none/bazel/v1"
  expect_eq 1 "$status"
  expect_has "copy older than 180 days. Set BAZELW_INDEX_MAX_AGE_DAYS" "$err"

  begin "an archive whose Bazel is too old"
  fake "$temp/old" apt-cache 'echo "Version: 4.2.3+ds-9"'
  fake "$temp/old" dpkg 'exit 1'
  build_with "$temp/old:$temp/sources:$temp/apt:$temp/x86" "$builder" build "$temp/none/bazel/v1"
  expect_eq 1 "$status"
  expect_has "forky has 4.2.3+ds-9. sid has 4.2.3+ds-9." "$err"
  expect_none "$temp/none/bazel/v1.work"
}

# The fields of list_sources, with its separators made visible.
sources() {
  (
    # shellcheck disable=SC1090
    source "$builder"
    list_sources "$@" | tr '\t\036\037' '|~;'
  )
}

test_sources() {
  mkdir -p "$temp/src"
  begin "one source a line"
  cat >"$temp/src/sources.list" <<'EOF'
# deb http://commented.test/debian bookworm main
deb http://mirror.test/debian bookworm main contrib # the mirror
deb-src http://mirror.test/debian bookworm main
  deb [ arch=amd64 signed-by=/usr/share/keyrings/a.gpg,/usr/share/keyrings/b.gpg ]   https://other.test/debian/   trixie   main

deb [trusted=yes check-valid-until=no] file:/srv/debian stable main
EOF
  expect_eq "http://mirror.test/debian|bookworm|main contrib|
https://other.test/debian/|trixie|main|Signed-By: /usr/share/keyrings/a.gpg /usr/share/keyrings/b.gpg;
file:/srv/debian|stable|main|Trusted: yes;Check-Valid-Until: no;" "$(sources "$temp/src/sources.list")"

  begin "deb822"
  cat >"$temp/src/debian.sources" <<'EOF'
# a comment
Types: deb deb-src
URIs: http://one.test/debian
 http://two.test/debian
Suites: bookworm bookworm-updates
# between fields
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb-src
URIs: http://source.test/debian
Suites: bookworm
Components: main

types: deb
uris: mirror+file:///etc/apt/mirrors/debian.list
suites: trixie
components: main non-free
check-valid-until: no
Enabled: yes

Enabled: no
Types: deb
URIs: http://off.test/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://inline.test/debian
Suites: sid
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc=
 -----END PGP PUBLIC KEY BLOCK-----
EOF
  expect_eq "http://one.test/debian|bookworm bookworm-updates|main|Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg;
http://two.test/debian|bookworm bookworm-updates|main|Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg;
mirror+file:///etc/apt/mirrors/debian.list|trixie|main non-free|Check-Valid-Until: no;
http://inline.test/debian|sid|main|Signed-By: ~ -----BEGIN PGP PUBLIC KEY BLOCK-----~ .~ abc=~ -----END PGP PUBLIC KEY BLOCK-----;" \
    "$(sources "$temp/src/debian.sources")"

  begin "a file that is missing is no source"
  expect_eq "" "$(sources "$temp/src/absent.list")"

  begin "the archive itself comes first; security, updates, flat and other components are passed over"
  cat >"$temp/src/mixed.list" <<'EOF'
deb http://vendor.test/apt bookworm main
deb http://tools.test/linux bookworm stable
deb http://security.test/debian-security bookworm-security main
deb http://flat.test/repo ./ main
deb cdrom:[Debian] bookworm main
deb [signed-by=/k.gpg] http://mirror.test/debian/ bookworm main
deb [signed-by=/k.gpg] http://mirror.test/debian/ bookworm-updates main
deb [signed-by=/k.gpg] http://mirror.test/debian/ sid main
deb http://frozen.test/archive/debian/20250520T000000Z bookworm main
EOF
  expect_eq "http://mirror.test/debian/|Signed-By: /k.gpg;
http://frozen.test/archive/debian/20250520T000000Z|
http://vendor.test/apt|" "$(
    # shellcheck disable=SC1090
    source "$builder"
    list_sources "$temp/src/mixed.list" | archive_candidates | tr '\t\036\037' '|~;'
  )"
}

test_order
test_override
test_cache_folder
test_concurrent
test_interrupted
test_failed_step
test_refusals
test_sources

if ((failures)); then
  echo "$failures checks failed"
  exit 1
fi
echo "all passed"
