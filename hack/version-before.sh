#!/usr/bin/env bash
# Prints the commit of the version before this one, which the recorded CRDs are of. If this checkout does not have it, prints why and fails.
set -eu # no pipefail: git reads only the beginning
cd "$(dirname "$0")/.."
commit=$(gzip -dc test/api/admission/testdata/previous-crds.tar.gz | git get-tar-commit-id)
if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
  echo "this checkout does not have its commit $commit (git fetch --unshallow gets it)"
  exit 1
fi
echo "$commit"
