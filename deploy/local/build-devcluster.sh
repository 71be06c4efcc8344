#!/usr/bin/env bash
# Builds the dev cluster (a Kubernetes control plane, KWOK and the KubeRay
# operator in one binary) and shows how far it is: the first time takes minutes.
#
#   build-devcluster.sh OUTPUT
set -euo pipefail

output=$(realpath -m "${1:?usage: build-devcluster.sh OUTPUT}")
cd "$(dirname "$0")/../devcluster"
export GOWORK=off CGO_ENABLED=0
version=$(../local/kubernetes-flags.sh)

# show counts the lines of a Go command, says every few seconds how many there
# were, and passes on what is no progress.
show() {
	local what=$1 of=$2 count=0 shown=$SECONDS line
	while IFS= read -r line; do
		case $line in
		'go: downloading '*) ;;
		*' '*)
			echo "$line"
			continue
			;;
		esac
		count=$((count + 1))
		if [ $((SECONDS - shown)) -ge 10 ]; then
			shown=$SECONDS
			echo "  $what: $count$of ($SECONDS s)"
		fi
	done
}

packages=$(mktemp)
trap 'rm -f "$packages"' EXIT
echo "dev cluster: reading its modules (the first time downloads them)"
go list -deps . 2>&1 >"$packages" | show "modules downloaded" ""
echo "dev cluster: building (the first time takes about 5 minutes on 2 cores)"
go build -v -trimpath -buildvcs=false -ldflags="-s -w $version" -o "$output" . 2>&1 |
	show "packages compiled" " of $(wc -l <"$packages")"
echo "dev cluster: built in $SECONDS s"
