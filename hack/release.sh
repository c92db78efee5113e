#!/usr/bin/env bash
# Builds all that a release consists of into dist/release, without a Docker engine: release.sh VERSION [REGISTRY]. The same commit and the same Go
# version give the same files, whoever builds them and wherever.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1 registry=${2:-}
out=$PWD/dist/release
export CGO_ENABLED=0

rm -rf "$out"
mkdir -p "$out"

# compile OS ARCH PROGRAM: the program as a file of the release. Beside the commit, nothing of this machine gets into it. Without the traces
# of gRPC the linker leaves out a quarter of the daemon, which alone has gRPC in it.
compile() {
  local ending=
  [[ $1 != windows ]] || ending=.exe
  GOOS=$1 GOARCH=$2 go build -trimpath -buildvcs=auto -tags grpcnotrace -ldflags '-s -w' -o "$out/$3-$version-$1-$2$ending" "./cmd/$3"
}

for arch in amd64 arm64; do
  for program in manager daemon rollout; do
    compile linux "$arch" "kruise-$program"
    (cd tools && go run ./image -binary "$out/kruise-$program-$version-linux-$arch" -entry "/$program" -arch "$arch" \
      -tag "${registry:+$registry/}kruise-$program:$version" -out "$out/kruise-$program-$version-linux-$arch.image.tar")
  done
  # The plugin of kubectl runs where people are.
  if [[ -d cmd/kubectl-kruise ]]; then
    for os in linux darwin windows; do
      compile "$os" "$arch" kubectl-kruise
    done
  fi
done
(
  cd tools/chart
  go run . release -version "$version" -registry "$registry" -out "$out"
  go run . sums -out "$out"
)
echo "The release is in dist/release:"
ls -l "$out" | tail -n +2
