#!/usr/bin/env bash
# Builds a private Bazel from Debian's packages: no root, nothing installed, the system's libc untouched.
#
#   prefix.sh build DIR         make DIR, or leave it as it is when it is ready; DIR/bazel is then the Bazel to call
#   prefix.sh run DIR ARG...    the same, and call it
#   prefix.sh truststore DIR    make the Java trust store again from the machine's certificates
#
# Whoever changes what this makes raises the number in the file "version" beside it: DIR is named after it.
#
# Debian's own Bazel >= 7.6 lives in a newer suite than the machines this is for, and needs that suite's libc. So the
# packages are unpacked beside the system and their programs are pointed at the libraries unpacked with them. The
# address of the archive and its signing key are those the machine's apt already uses.

set -uo pipefail

min_version=7.6
# Tried in this order. The second is where a package goes when it has had to leave the first for a while.
suites="forky sid"

modules="rules_python=rules/python bazel_skylib=tools/skylib platforms=tools/platforms rules_cc=rules/cc
  rules_java=rules/java rules_license=rules/license rules_proto=rules/proto rules_shell=rules/shell
  rules_pkg=rules/pkg bazel_features=tools/features stardoc=tools/stardoc"
# bazel_tools asks for these, and Debian has no module of them.
stubs="protobuf zlib apple_support buildozer"
# These are reached by no dependency of bazel_tools. A stub asks for them, because Bazel refuses an override of a
# module that nothing asks for and a workspace need not name them.
unreached="rules_shell rules_pkg stardoc"

packages="bazel-bootstrap bazel-features bazel-platforms bazel-rules-cc bazel-rules-java bazel-rules-license
  bazel-rules-pkg bazel-rules-proto bazel-rules-python bazel-rules-shell bazel-skylib bazel-stardoc
  default-jre-headless patchelf"
# What those depend on and a prefix has no use for: compilers and tools the machine has or does not need, the JDK
# (350 MB; a JRE runs the server), and libraries of libraries no class of Bazel loads. apt is told they are installed.
left_out="build-essential ca-certificates ca-certificates-java debconf default-jdk-headless java-common
  libeclipse-jdt-core-compiler-batch-java libeclipse-jdt-core-java libhttpclient-java libjavaparser-java libjetty9-java libjgit-java libjs-jquery
  libmaven-enforcer-plugin-java libmaven-resolver-java libmaven3-core-java libmongodb-java libnss3 netbase
  node-core-js node-html5shiv openssl openssl-provider-legacy perl protobuf-compiler-grpc-java-plugin python3 unzip
  util-linux zlib1g-dev"

say() { printf 'bazelw: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}


# Prints the enabled package sources of the files given, one a line, tab-separated:
#   URI, suites, components, further deb822 fields ending each in \037 and with \036 for a line break inside.
# A file whose name ends in .sources is deb822; any other has one source a line.
list_sources() {
  local file
  for file in "$@"; do
    [[ -r $file ]] || continue
    case $file in
      *.sources) awk "$deb822_awk" "$file" ;;
      *) awk "$oneline_awk" "$file" ;;
    esac
  done
}

# The fields kept are those that say whether and how the archive is trusted.
deb822_awk='
  function flush(  n, i, u, opts, enabled) {
    enabled = tolower(f["enabled"])
    if (f["types"] ~ /(^|[ \t\036])deb([ \t\036]|$)/ && enabled !~ /^(no|false|0|off)$/) {
      opts = ""
      if ("signed-by" in f) opts = opts "Signed-By: " f["signed-by"] "\037"
      if ("trusted" in f) opts = opts "Trusted: " f["trusted"] "\037"
      if ("check-valid-until" in f) opts = opts "Check-Valid-Until: " f["check-valid-until"] "\037"
      gsub(/[ \t\036]+/, " ", f["suites"]); gsub(/[ \t\036]+/, " ", f["components"])
      n = split(f["uris"], u, /[ \t\036]+/)
      for (i = 1; i <= n; i++) if (u[i] != "") print u[i] "\t" f["suites"] "\t" f["components"] "\t" opts
    }
    split("", f)
    field = ""
  }
  { sub(/\r$/, "") }
  /^#/ { next }
  /^[ \t]*$/ { flush(); next }
  /^[ \t]/ { if (field != "") f[field] = f[field] "\036" $0; next }
  {
    colon = index($0, ":")
    if (!colon) next
    field = tolower(substr($0, 1, colon - 1))
    value = substr($0, colon + 1)
    gsub(/^[ \t]+|[ \t]+$/, "", value)
    f[field] = value
  }
  END { flush() }'

oneline_awk='
  { sub(/\r$/, ""); sub(/#.*/, "") }
  $1 != "deb" { next }
  {
    line = $0
    sub(/^[ \t]*deb[ \t]+/, "", line)
    opts = ""
    if (line ~ /^\[/) {
      end = index(line, "]")
      n = split(substr(line, 2, end - 2), o, /[ \t]+/)
      line = substr(line, end + 1)
      for (i = 1; i <= n; i++) {
        eq = index(o[i], "=")
        key = tolower(substr(o[i], 1, eq - 1))
        value = substr(o[i], eq + 1)
        gsub(/,/, " ", value)
        if (key == "signed-by") opts = opts "Signed-By: " value "\037"
        if (key == "trusted") opts = opts "Trusted: " value "\037"
        if (key == "check-valid-until") opts = opts "Check-Valid-Until: " value "\037"
      }
    }
    n = split(line, w, /[ \t]+/)
    first = (w[1] == "") ? 2 : 1
    components = ""
    for (i = first + 2; i <= n; i++) if (w[i] != "") components = components (components == "" ? "" : " ") w[i]
    print w[first] "\t" w[first + 1] "\t" components "\t" opts
  }'

# Of the sources on stdin (as list_sources prints them), those that may be the Debian archive itself: a plain suite, not
# -updates or -security, with a main component. Other vendors use suite names of Debian too, so an address that says
# debian comes first.
archive_candidates() {
  awk -F '\t' '
    $1 !~ /^cdrom:/ && (" " $3 " ") ~ / main / && $2 !~ /\// {
      n = split($2, s, " ")
      plain = 0
      for (i = 1; i <= n; i++) if (s[i] !~ /-/) plain = 1
      key = $1 FS $4
      if (!plain || (key in seen)) next
      seen[key] = 1
      print (($1 ~ /\/debian\/?$|\/debian\/[0-9TZ]+\/?$|debian\.list$/) ? 0 : 1) "\t" $1 "\t" $4
    }' | sort -s -t $'\t' -k1,1n | cut -f2-
}

apt_here() {
  "$1" -c "$work/apt.conf" "${@:2}"
}

# Writes an apt configuration that keeps the machine's proxies, certificates and logins, and shares nothing else with it.
write_apt_config() {
  mkdir -p "$download/lists/partial" "$download/archives/partial" "$work/sources" "$work/preferences"
  local name
  for name in $left_out; do
    printf 'Package: %s\nStatus: install ok installed\nArchitecture: %s\nMulti-Arch: foreign\nVersion: 999:0\nMaintainer: none\nDescription: left out of the prefix\n\n' \
      "$name" "$deb_arch"
  done >"$work/status"
  # Hooks and a default release that the machine sets are for the machine's own packages.
  # A mirror may be some months behind the archive; its index is still checked against the archive's signature, and
  # Min-ValidTime bounds the age at which it is accepted.
  cat >"$work/apt.conf" <<EOF
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Architectures;
APT::Architecture "$deb_arch";
APT::Architectures { "$deb_arch"; };
APT::Default-Release "";
APT::Install-Recommends "false";
APT::Install-Suggests "false";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::Min-ValidTime "$((index_max_age_days * 86400))";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$work/sources";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "$work/preferences";
Dir::State "$work";
Dir::State::lists "$download/lists";
Dir::State::status "$work/status";
Dir::Cache "$work";
Dir::Cache::archives "$download/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dpkg::Use-Pty "0";
EOF
}

# Finds an archive among the machine's sources whose $suites carry a Bazel that is new enough, and reads its index.
read_index() {
  local uri options suite version tried="" found="" expired="" list source_list source_parts
  eval "$(apt-config shell source_list Dir::Etc::sourcelist/f source_parts Dir::Etc::sourceparts/d)"
  list=$(list_sources "$source_list" "$source_parts"/*.list "$source_parts"/*.sources | archive_candidates)
  [[ -n $list ]] ||
    fail "No source of Debian packages is enabled in $source_list or $source_parts, and Bazel is built from them. $instead"
  while IFS=$'\t' read -r uri options; do
    for suite in $suites; do
      say "reading the package index of $suite from $uri"
      {
        printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n' "$uri" "$suite"
        printf '%s' "$options" | tr '\036\037' '\n\n'
      } >"$work/sources/archive.sources"
      if ! apt_here apt-get -qq update >"$work/log" 2>&1; then
        grep -q 'is expired' "$work/log" && expired=yes
        tried+="$(grep '^E:' "$work/log" | head -n 1). "
        continue
      fi
      version=$(apt_here apt-cache show --no-all-versions bazel-bootstrap 2>/dev/null | sed -n 's/^Version: //p')
      if [[ -n $version ]] && dpkg --compare-versions "$version" ge "$min_version"; then
        return 0
      fi
      found+="$suite has ${version:-no bazel-bootstrap}. "
    done
  done <<<"$list"
  if [[ -n $found ]]; then
    fail "The Debian archive that apt uses has no Bazel of at least $min_version: ${found}$instead"
  fi
  if [[ -n $expired ]]; then
    fail "The Debian archive that apt uses is a copy older than $index_max_age_days days. Set BAZELW_INDEX_MAX_AGE_DAYS to accept an older one. $instead"
  fi
  fail "The package index could not be read from any Debian archive that apt uses. apt says: ${tried}Check the network and apt's proxy. $instead"
}

megabytes() {
  local total=0 size
  while read -r size; do ((total += size)); done
  printf '%s' $(((total + 500000) / 1000000))
}

# Shows how much has arrived, until the process $1 ends: on a terminal on one line, elsewhere rarely enough for a log.
show_progress() {
  local watched=$1 total=$2 ticks=0 got every=10 start='' end=$'\n'
  if [[ -t 2 ]]; then every=1 start=$'\r' end=''; fi
  while kill -0 "$watched" 2>/dev/null; do
    sleep 0.2
    ((++ticks % (every * 5) == 0)) || continue
    got=$(find "$download/archives" -name '*.deb' -printf '%s\n' 2>/dev/null | megabytes)
    printf '%sbazelw: %s of %s MB %s' "$start" "$got" "$total" "$end" >&2
  done
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
}

fetch_packages() {
  local total status
  # Seen from an empty folder, or what has arrived already would be missing from the list.
  mkdir -p "$work/nothing/partial"
  # shellcheck disable=SC2086
  apt_here apt-get install -y --print-uris -o Dir::Cache::archives="$work/nothing" $packages >"$work/uris" 2>"$work/log" ||
    fail "apt cannot put Bazel's packages together: $(grep -v '^W:' "$work/log" "$work/uris" | tail -n 3 | tr '\n' ' ')$instead"
  total=$(sed -n "s/^'.*' [^ ]* \([0-9]*\) .*/\1/p" "$work/uris" | megabytes)
  say "fetching $total MB of packages into $download (an interrupted download goes on where it stopped)"
  # In the background, so that a signal ends it at once: a shell waits for a program in the foreground first.
  # shellcheck disable=SC2086
  apt-get -c "$work/apt.conf" -qq install -y --download-only $packages >"$work/log" 2>&1 &
  fetching=$!
  show_progress "$fetching" "$total"
  wait "$fetching"
  status=$?
  fetching=
  ((status == 0)) ||
    fail "The download stopped: $(grep '^E:' "$work/log" | head -n 2 | tr '\n' ' ')Call this again to go on where it stopped."
}

unpack_packages() {
  local deb problem
  for deb in $(sed -n "s/^'.*' \([^ ]*\) [0-9]* .*/\1/p" "$work/uris"); do
    problem=$(
      {
        dpkg-deb --fsys-tarfile "$download/archives/$deb" |
          tar -x -C "$root" --no-same-owner --exclude='./usr/share/doc/*/*.gz' --exclude=./usr/share/man \
            --exclude=./usr/share/maven-repo --exclude=./usr/share/javadoc --exclude=./usr/share/nodejs \
            --exclude=./usr/share/javascript --exclude=./usr/share/lintian --exclude='./usr/lib/jvm/*/man' \
            --exclude=./usr/lib/debug --exclude='./usr/lib/jvm/*/lib/server/classes_*.jsa'
      } 2>&1
    ) ||
      fail "'$download/archives/$deb' could not be unpacked into '$root': ${problem%%$'\n'*}. What was fetched is kept; call this again when that is mended."
  done
}

# Points the programs at the libraries unpacked beside them, by the path the prefix will have.
patch_programs() {
  local loader=usr/lib/$triplet/$loader_name file kind
  local -a run=("$root/$loader" --library-path "$root/usr/lib/$triplet" "$root/usr/bin/patchelf")
  for file in "$root"/{usr/bin/bazel,"usr/libexec/$triplet/bazel"/*,"$jdk"/bin/*,"$jdk"/lib/jspawnhelper}; do
    [[ -f $file && ! -L $file ]] || continue
    LC_ALL=C read -r -N 4 kind <"$file" 2>/dev/null
    [[ $kind == $'\x7fELF' ]] || continue
    "${run[@]}" --set-interpreter "$prefix/$loader" --force-rpath \
      --set-rpath "$prefix/$jdk/lib:$prefix/$jdk/lib/server:$prefix/usr/lib/$triplet" "$file" 2>"$work/log" ||
      fail "'$file' could not be pointed at the libraries of the prefix: $(head -n 1 "$work/log"). $instead"
  done
}

# Relative links, because the prefix still moves.
repoint_symlinks() {
  local link target
  while IFS= read -r -d '' link; do
    target=$(readlink -- "$link")
    if [[ -e $root$target ]]; then
      ln -sfnr -- "$root$target" "$link"
    fi
  done < <(find "$root" -type l -lname '/*' -print0)
}


run_java() {
  "$1/usr/lib/$triplet/$loader_name" --library-path "$1/usr/lib/$triplet:$1/$jdk/lib" \
    "$1/$jdk/bin/java" -XX:TieredStopAtLevel=1 "$here/PrefixTool.java" "${@:2}"
}

# Bazel's downloader trusts what the machine trusts, among it a company's own authority.
write_truststore() {
  local bundle=/etc/ssl/certs/ca-certificates.crt
  if [[ -s $bundle ]]; then
    run_java "$1" truststore "$bundle" "$2" 2>"$work/log" ||
      fail "The certificates in '$bundle' could not be turned into a Java trust store: $(head -n 1 "$work/log")."
    # bazelw makes the store again when the bundle is newer.
    touch -r "$bundle" "$2"
  else
    # An empty one: Java refuses to make connections without any, and says so.
    : >"$2"
  fi
}

write_stubs() {
  local name
  for name in $stubs; do
    mkdir -p "$root/modules/$name"
    printf 'module(name = "%s")\n' "$name" >"$root/modules/$name/MODULE.bazel"
    : >"$root/modules/$name/BUILD.bazel"
  done
  for name in $unreached; do
    printf 'bazel_dep(name = "%s", version = "0")\n' "$name"
  done >>"$root/modules/zlib/MODULE.bazel"
  cat >"$root/modules/buildozer/buildozer_binary.bzl" <<'EOF'
def _empty_impl(repository_ctx):
    repository_ctx.file("BUILD.bazel", "")

_empty = repository_rule(implementation = _empty_impl)

def _buildozer_binary_impl(_module_ctx):
    _empty(name = "buildozer_binary")

buildozer_binary = module_extension(implementation = _buildozer_binary_impl)
EOF
}

# Stands for the C compiler where there is none, so that what needs no compiler can be built.
write_no_compiler() {
  cat >"$root/no-compiler" <<'EOF'
#!/bin/sh
echo "This machine has no C compiler, and this target needs one. Install gcc or clang, or set CC to the path of one." >&2
exit 1
EOF
  chmod +x "$root/no-compiler"
}

write_bazelrc() {
  local share=$prefix/usr/share/bazel label module name
  label=$(<"$root/usr/share/bazel/build-label.txt")
  # Debian's Bazel does not know its own version; modules choose code by it.
  mkdir -p "$root/label"
  printf 'build.label=%s\nbuild.timestamp=0\nbuild.timestamp.as.int=0\n' "$label" >"$root/label/build-data.properties"
  {
    printf 'startup --install_base=%s --trust_install_base\n' "$share"
    printf 'startup --server_javabase=%s\n' "$prefix/$jdk"
    printf 'startup --host_jvm_args=-Xbootclasspath/a:%s\n' "$prefix/label"
    printf 'startup --host_jvm_args=-Djavax.net.ssl.trustStore=%s\n' "$prefix/truststore"
    printf 'startup --host_jvm_args=-Djavax.net.ssl.trustStorePassword=changeit\n'
    # The suffix of WORKSPACE names archives outside Debian.
    printf 'common --noenable_workspace\n'
    for module in $modules; do
      printf 'common --override_module=%s=%s/%s\n' "${module%%=*}" "$share" "${module#*=}"
    done
    for name in $stubs; do
      printf 'common --override_module=%s=%s/modules/%s\n' "$name" "$prefix" "$name"
    done
  } >"$root/bazelrc"
}

# Starts the Bazel just unpacked, in a workspace that reaches every module, before anybody else is told of it.
try_it() {
  local space=$work/try status
  mkdir -p "$space"
  printf 'attempt = use_repo_rule("//:try.bzl", "attempt")\nattempt(name = "tried")\n' >"$space/MODULE.bazel"
  : >"$space/BUILD.bazel"
  cat >"$space/try.bzl" <<'EOF'
def _try_impl(repository_ctx):
    if not native.bazel_version:
        fail("native.bazel_version is empty")
    result = repository_ctx.execute(["sh", "-c", "echo filegroup"])
    repository_ctx.file("BUILD.bazel", result.stdout.strip() + "(name = \"tried\")\n")

attempt = repository_rule(implementation = _try_impl)
EOF
  (
    # The server must not keep the lock of this script.
    exec {lock}>&-
    cd "$space" || exit
    bazel=("$prefix/usr/bin/bazel" --nohome_rc --nosystem_rc --bazelrc="$prefix/bazelrc" --output_user_root="$work/output" --max_idle_secs=30)
    "${bazel[@]}" query @tried//:tried >"$work/log" 2>&1
    status=$?
    "${bazel[@]}" shutdown >/dev/null 2>&1
    exit "$status"
  )
  status=$?
  ((status == 0)) || {
    tail -n 8 "$work/log" >&2
    fail "The Bazel made of Debian's packages does not start on this machine; the lines above are its own. $instead"
  }
  chmod -R u+w "$work/output" 2>/dev/null
}

clean_up() {
  if [[ -n ${fetching-} ]]; then
    kill "$fetching" 2>/dev/null
    wait "$fetching" 2>/dev/null
  fi
  rm -rf -- "$work" "$root"
}

build() {
  prefix=$1
  instead="Put bazelisk, or a bazel of at least $min_version, on PATH or name one in BAZELW_BAZEL."
  [[ -z ${BAZELW_REFUSED-} ]] || say "$BAZELW_REFUSED"

  case $(uname -m) in
    x86_64) deb_arch=amd64 triplet=x86_64-linux-gnu loader_name=ld-linux-x86-64.so.2 ;;
    aarch64) deb_arch=arm64 triplet=aarch64-linux-gnu loader_name=ld-linux-aarch64.so.1 ;;
    *) fail "Debian has no Bazel for this machine ($(uname -s) $(uname -m)): only for Linux on x86_64 and aarch64. $instead" ;;
  esac
  local tool
  for tool in apt-get apt-cache apt-config dpkg-deb dpkg flock awk tar; do
    type -P "$tool" >/dev/null ||
      fail "No bazelisk or bazel was found, and one can be built only from Debian's packages: '$tool' is missing, so this is not Debian, or a cut-down one. $instead"
  done
  [[ $prefix =~ ^[A-Za-z0-9_./+@=,~-]+$ ]] ||
    fail "Bazel's private copy cannot live in '$prefix': the path has a character other than letters, digits and _./+@=,~-. Set RULES_EXECUTORCH_CACHE to another folder."

  local parent=${prefix%/*}
  (umask 077 && mkdir -p "$parent") 2>/dev/null
  [[ -d $parent && -w $parent ]] ||
    fail "'$parent' cannot be written, and Bazel's private copy belongs there. Set RULES_EXECUTORCH_CACHE to a folder of your own."
  # A folder that another user made, for example under /var/tmp, could hold that user's programs.
  [[ -O $parent ]] ||
    fail "'$parent' belongs to another user, and programs are not run from there. Set RULES_EXECUTORCH_CACHE to a folder of your own."

  exec {lock}>"$prefix.lock"
  if ! flock -n "$lock"; then
    say "another call is preparing Bazel in $prefix; waiting for it"
    flock "$lock"
  fi
  # The call waited for has made it.
  if [[ -x $prefix/bazel ]]; then
    exec {lock}>&-
    return
  fi

  say "no bazelisk and no bazel >= $min_version on PATH: making a private one from Debian's packages in $prefix (once)"
  work=$prefix.work download=$prefix.download root=$prefix.new
  # What a call that was killed left behind. Its download is worth keeping.
  rm -rf -- "$work" "$root" "$prefix"
  mkdir -p "$work" "$root" || fail "'$work' could not be made. Is the disk full?"
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP

  write_apt_config
  read_index
  fetch_packages
  say "unpacking"
  unpack_packages
  repoint_symlinks
  jdk=$(cd "$root" && printf '%s\n' usr/lib/jvm/java-*-openjdk-"$deb_arch" | grep -v 'java-1\.' | sort -V | tail -n 1)
  [[ -x $root/$jdk/bin/java ]] || fail "Debian's packages brought no Java where it was expected (usr/lib/jvm). $instead"
  run_java "$root" classpath "$root" "$prefix" "$root/usr/share/bazel/bazel_classpath_debian_depends.txt" 2>"$work/log" ||
    fail "The list of Bazel's jars could not be made: $(head -n 1 "$work/log"). $instead"
  write_truststore "$root" "$root/truststore"
  patch_programs
  write_stubs
  write_no_compiler
  write_bazelrc
  printf '%s %s %s\n' "$triplet" "$loader_name" "$jdk" >"$root/layout"
  mv -T -- "$root" "$prefix" || fail "'$root' could not be renamed to '$prefix'. Call this again."
  say "trying it"
  try_it
  # Its presence is what makes the prefix ready, so it comes last and at once.
  cat >"$work/bazel" <<EOF || fail "'$work/bazel' could not be written. Is the disk full? Call this again when there is room."
#!/bin/sh
# Bazel looks for gcc alone, and without it refuses Python targets as well, though they compile nothing.
if [ -z "\${CC-}" ] && ! command -v gcc >/dev/null; then
  CC=\$(command -v clang || echo "$prefix/no-compiler")
  export CC
fi
exec "$prefix/usr/bin/bazel" --bazelrc="$prefix/bazelrc" "\$@"
EOF
  chmod +x "$work/bazel"
  mv -- "$work/bazel" "$prefix/bazel" || fail "'$prefix/bazel' could not be put in place. Call this again."
  rm -rf -- "$download"
  clean_up
  trap - EXIT
  say "Bazel $(<"$prefix/usr/share/bazel/build-label.txt") is ready"
  exec {lock}>&-
}

truststore() {
  prefix=$1
  read -r triplet loader_name jdk <"$prefix/layout" || fail "'$prefix' holds no Bazel; remove it and call bazelw again."
  exec {lock}>"$prefix.lock"
  flock "$lock"
  work=$prefix.work
  mkdir -p "$work"
  trap 'rm -rf -- "$work"' EXIT
  write_truststore "$prefix" "$work/truststore"
  mv -- "$work/truststore" "$prefix/truststore"
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
index_max_age_days=${BAZELW_INDEX_MAX_AGE_DAYS:-180}
[[ $index_max_age_days =~ ^[1-9][0-9]{0,4}$ ]] ||
  fail "BAZELW_INDEX_MAX_AGE_DAYS is '$index_max_age_days', which is not a number of days between 1 and 99999."
if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  case ${1-}/$# in
    build/2) build "$2" ;;
    run/[2-9] | run/[1-9][0-9]*)
      build "$2"
      exec "$2/bazel" "${@:3}"
      ;;
    truststore/2) truststore "$2" ;;
    *) fail "prefix.sh takes 'build DIR', 'run DIR ARG...' or 'truststore DIR'." ;;
  esac
fi
