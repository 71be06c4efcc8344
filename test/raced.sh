#!/usr/bin/env bash
# Lists the packages whose tests run with the race detector: those of pkg and services that
# start goroutines or timers, or use locks, atomic values or groups of package sync, and the
# two suites that have all services in their process under load. Elsewhere the detector finds
# nothing, or what it finds there too, and makes tests several times slower: other packages
# compute in sequence, and other suites start the same services, or programs. So do the
# packages for a laptop, for tests and for benchmarks, most of whose tests wait for programs.
#
# With RACE=all those packages and the other suites that have services in their process are
# listed, too.
set -euo pipefail
cd "$(dirname "$0")/.."

# sync.Once and sync.Map need no care of those who use them.
concurrent='(^|[{;])[[:space:]]*go [A-Za-z_(]|time\.AfterFunc\(|^[[:space:]]*([a-z]+ )?"(golang\.org/x/)?sync/[a-z]+"$|(^|[^A-Za-z_.])sync\.(Mutex|RWMutex|WaitGroup|Cond|NewCond|Pool)($|[^A-Za-z])'
suites='test/(outage|clusters)' support='pkg/(local|testkit)/.*|services/muster-dev(/.*)?|services/queue-manager/ledgerbench'
if [ "${RACE:-}" = all ]; then suites='test/(outage|clusters|e2e|security|console|kubequeues|mistakes)' support=none; fi

go list -f '{{.ImportPath}} {{.Dir}}{{range .GoFiles}} {{.}}{{end}}' work | while read -r package folder files; do
	path=${package#muster.dev/muster/}
	case $path in
	pkg/* | services/*)
		if grep -qxE "$support" <<<"$path"; then continue; fi
		# shellcheck disable=SC2086 # names of Go files have no spaces
		if [ -n "$files" ] && (cd "$folder" && grep -qE "$concurrent" $files); then echo "$package"; fi
		;;
	*) if grep -qxE "$suites" <<<"$path"; then echo "$package"; fi ;;
	esac
done
