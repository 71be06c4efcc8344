#!/usr/bin/env bash
# Lists the packages whose tests run with the race detector: those of pkg and services that
# start goroutines or timers, or import package sync, and the two suites that have all
# services in their process under load. Elsewhere the detector finds nothing, or what it finds
# there too, and makes tests several times slower: other packages compute in sequence, and
# other suites start the same services, or programs.
#
# With RACE=all the other suites that have services in their process are listed, too.
set -euo pipefail
cd "$(dirname "$0")/.."

concurrent='(^|[{;])[[:space:]]*go [A-Za-z_(]|time\.AfterFunc\(|^[[:space:]]*([a-z]+ )?"(golang\.org/x/)?sync(/[a-z]+)?"$'
suites='outage|clusters'
if [ "${RACE:-}" = all ]; then suites+='|e2e|security|console|kubequeues|mistakes'; fi

go list -f '{{.ImportPath}} {{.Dir}}{{range .GoFiles}} {{.}}{{end}}' work | while read -r package folder files; do
	path=${package#muster.dev/muster/}
	case $path in
	pkg/* | services/*)
		# shellcheck disable=SC2086 # names of Go files have no spaces
		if [ -n "$files" ] && (cd "$folder" && grep -qE "$concurrent" $files); then echo "$package"; fi
		;;
	*) if grep -qxE "test/($suites)" <<<"$path"; then echo "$package"; fi ;;
	esac
done
