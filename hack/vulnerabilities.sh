#!/usr/bin/env bash
# Fails if the programs or the tools use code with a known vulnerability, with code 3 if that cannot be told because the vulnerability database
# (https://vuln.go.dev, or that of GOVULNDB) cannot be reached.
set -euo pipefail
cd "$(dirname "$0")/.."

check=$(mktemp -d)
trap 'rm -rf "$check"' EXIT
(cd tools/vuln && go build -o "$check/govulncheck" golang.org/x/vuln/cmd/govulncheck)

# Of what is shipped, the functions that are called count. Of what only builds and tests it, the packages that are imported: to follow the calls of
# all of Kubernetes takes a quarter of an hour.
for module in . tools tools/chart tools/site localcluster; do
  echo "Looking for vulnerabilities in $module"
  scan=package
  [[ $module != . ]] || scan=symbol
  code=0
  (cd "$module" && "$check/govulncheck" -scan "$scan" ${GOVULNDB:+-db "$GOVULNDB"} ./...) >"$check/output" 2>&1 || code=$?
  if grep -q '^govulncheck: fetching vulnerabilities' "$check/output"; then
    cat "$check/output"
    exit 3
  fi
  if ((code != 0)); then
    cat "$check/output"
    exit 1
  fi
done
