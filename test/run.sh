#!/usr/bin/env bash
# Runs every test of every module, with the race detector where test/raced.sh says,
# against the real parts that `make test` built or installed, and says what was
# skipped. A part that is missing is a failure here, not a skip.
#
# More arguments go to go test: test/run.sh -run TestName
#
# With RERUN=1, which CI sets, up to twelve tests that failed without a panic or a data
# race run once more, one at a time with the machine to themselves. The run is good when
# they pass then, and lines at its end name them as flaky.
set -euo pipefail
cd "$(dirname "$0")/.."

export CGO_ENABLED=1 MUSTER_REQUIRE_SERVICES=1
export MUSTER_DEVCLUSTER=${MUSTER_DEVCLUSTER:-$PWD/bin/devcluster}
export MUSTER_NATS_SERVER=${MUSTER_NATS_SERVER:-$PWD/bin/nats-server}
# A server that the user names serves the tests' databases too.
export MUSTER_TEST_DATABASE_URL=${MUSTER_TEST_DATABASE_URL:-${MUSTER_DATABASE_URL:-}}
limit=40m # of a package, on a slow machine
# How many draws check each property. `.ci/properties` draws more, with new seeds, in CI.
export RAPID_CHECKS=${RAPID_CHECKS:-30}
# test/chaos draws a sample of faults. A test that runs again draws the same one.
if [ -z "${MUSTER_TEST_TALLY:-}" ]; then
	export MUSTER_CHAOS_SEED=${MUSTER_CHAOS_SEED:-$(((RANDOM << 15 | RANDOM) + 1))}
	echo "test: sample of faults: seed $MUSTER_CHAOS_SEED (MUSTER_CHAOS_SEED=$MUSTER_CHAOS_SEED draws the same)"
fi

# Files of the tests are short-lived: hundreds of databases, streams and clusters. In
# memory, where there is plenty, the kernel spends a third of the time on them. What the
# compiler makes stays on disk.
memory=/dev/shm
mine=
available=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null) || available=0
if [ -n "${MUSTER_TEST_TALLY:-}" ]; then
	: # this is the run beside the containers, which has them there
elif free=$(df --output=avail -k "$memory" 2>/dev/null | tail -1) &&
	((free > 8 << 20 && available > 12 << 20)) && mine=$(mktemp -d "$memory/muster-test.XXXXXX" 2>/dev/null); then
	chmod 755 "$mine" # Postgres runs in another account
	# Garbage of the tests, of nats-server and of the dev clusters is collected more rarely then:
	# that saves a tenth of the processor time.
	export MUSTER_TEST_GOGC=${MUSTER_TEST_GOGC:-300}
	export GOTMPDIR=${GOTMPDIR:-${TMPDIR:-/tmp}} TMPDIR=$mine # GOTMPDIR is the compiler's
	echo "test: temporary files are kept in memory, below $mine"
else
	echo "test: temporary files are kept in ${TMPDIR:-/tmp}: $memory has too little room"
fi
# Where a Docker engine answers, it is used: the suites of what holds when parts fail run in
# containers, and all other tests have their Postgres and NATS there. Elsewhere everything
# runs in processes of this machine.
if [ -n "${MUSTER_TEST_TALLY:-}" ]; then
	: # they are there
elif [ "${MUSTER_TEST_PROVIDER:-}" = local ]; then
	echo "test: MUSTER_TEST_PROVIDER=local: Postgres, NATS and the suites of test/suite run in processes of this machine, NOT in containers"
elif why=$(deploy/local/compose.sh able 2>&1); then
	echo "test: a Docker engine answers: the suites of test/suite run in containers, and Postgres and NATS of all other tests"
	programs=$(mktemp -d)
	trap 'rm -rf "$programs" ${mine:+"$mine"}' EXIT
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$programs/servers" ./test/containers/servers
	code=0
	export MUSTER_TEST_SERVERS=$programs/servers # its own test runs it, too
	"$programs/servers" -nats-server "$MUSTER_NATS_SERVER" ${mine:+-memory} -- test/run.sh "$@" || code=$?
	exit $code
else
	export MUSTER_TEST_PROVIDER=local
	echo "test: ${why//$'\n'/ }: Postgres, NATS and the suites of test/suite run in processes of this machine, NOT in containers"
fi

packages=$(go list work)
# first puts the packages that take longest first, so that no core waits for the last one. One
# that is in the other lane does not count; it fails where there is none of that name.
first() {
	local all name
	all=$(cat)
	for name in "$@"; do
		grep -xF "muster.dev/muster/$name" <<<"$all" || grep -qxF "muster.dev/muster/$name" <<<"$packages" || {
			echo "test: there is no package $name; correct its name in test/run.sh" >&2
			return 1
		}
	done
	grep -vxF "$(printf 'muster.dev/muster/%s\n' "$@")" <<<"$all" || [ $? = 1 ] # all of them are named
}
# The script ends when one of these assignments fails. It would not notice that a process
# substitution of mapfile fails, and run the rest of the packages without the race detector.
list=$(test/raced.sh | first test/outage services/queue-manager/app test/clusters services/dispatcher/app)
mapfile -t raced <<<"$list"
list=$(grep -vxF "$list" <<<"$packages" |
	first test/e2e test/containers test/suite/local test/chaos test/compose test/sim test/security test/kubequeues services/muster-dev/internal/cli \
		test/console test/soak test/parity test/scheduler test/admission deploy/install)
mapfile -t others <<<"$list"
if [ $((${#raced[@]} + ${#others[@]})) != "$(wc -l <<<"$packages")" ]; then
	echo "test: the lanes have ${#raced[@]} and ${#others[@]} packages of $(wc -l <<<"$packages")" >&2
	exit 1
fi

# The report runs the tests of each package, to know their processor time. Without debug information
# linking takes a third less time. Most tests wait most of the time: one more of a package runs at once
# than there are cores. More would wait for each other longer than they allow. `make lint` vets
# all packages, once and not for each kind of build.
run() { go test -json -vet=off -shuffle=on -timeout=$limit -parallel=$((cores + 1)) -ldflags='-s -w' -exec "env GOGC=${MUSTER_TEST_GOGC:-100} $report/report -spend" "$@"; }

# Three lanes run at once, for the same reason. What has no race detector has the flags of
# `make build`, so that its packages are compiled once.
cores=$(nproc)
with_race() { run -race -p=1 "$@" "${raced[@]}"; }
without() { CGO_ENABLED=0 run -trimpath -p="$cores" "$@" "${others[@]}"; }
# The modules outside of the workspace link so much (the dev cluster: all of Kubernetes) that
# building that with the race detector would take longer than everything else together.
outside() {
	local failed=0
	for module in deploy/helm deploy/devcluster; do
		(cd "$module" && CGO_ENABLED=0 GOWORK=off run -trimpath -p=1 "$@" ./...) || failed=1
	done
	return $failed
}

report=$(mktemp -d)
lanes=()
finish() {
	[ ${#lanes[@]} = 0 ] || kill -INT -- "${lanes[@]/#/-}" 2>/dev/null || true # go test ends its tests
	rm -rf "$report" ${mine:+"$mine"}
}
trap finish EXIT
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$report/report" ./test/report
echo "test: compiling (with the race detector the first time takes minutes), then running"
# spent prints the ticks for which the processors of this machine were busy, and all of them.
spent() { awk '/^cpu / { busy = $2 + $3 + $4 + $7 + $8; printf "%.0f %.0f\n", busy, busy + $5 + $6 }' /proc/stat 2>/dev/null || echo 0 0; }
read -r busy all <<<"$(spent)"
began=$SECONDS
set -m # each lane is a group of processes, which an interrupt reaches as a whole
for lane in with_race without outside; do
	mkfifo "$report/$lane"
	{
		failed=0
		$lane "$@" || failed=$?
		echo "$lane $((SECONDS - began)) s" >>"$report/took"
		exit $failed
	} >"$report/$lane" </dev/null &
	lanes+=($!)
done
set +m
code=0
"$report/report" -again "$report/again" "$report"/{with_race,without,outside} || code=1
for lane in "${lanes[@]}"; do wait "$lane" || code=1; done
lanes=()
# What to cut next: a lane that is longer than the others, or, where the processors are busy, work.
read -r busy_now all_now <<<"$(spent)"
echo "test: lanes: $(paste -sd, "$report/took" 2>/dev/null | sed 's/,/, /g'); the processors were busy for $((100 * (busy_now - busy) / (all_now - all + 1))) % of the time"
[ $code = 0 ] && exit 0
[ -n "${RERUN:-}" ] && [ -s "$report/again" ] || exit 1

# alone runs a test of a package once more, as its lane did.
alone() {
	local package=$1 test=("-count=1" "-run=^$2\$")
	case $package in
	muster.dev/muster/deploy/helm* | muster.dev/muster/deploy/devcluster*)
		local folder=${package#muster.dev/muster/}
		(cd "$folder" && CGO_ENABLED=0 GOWORK=off run -trimpath "${test[@]}" .)
		;;
	*) if printf '%s\n' "${raced[@]}" | grep -qx "$package"; then
		run -race "${test[@]}" "$package"
	else
		CGO_ENABLED=0 run -trimpath "${test[@]}" "$package"
	fi ;;
	esac
}
echo "test: running again, alone: $(cut -d' ' -f2 "$report/again" | xargs)"
while read -r package name; do
	alone "$package" "$name" </dev/null | "$report/report"
done <"$report/again"
while read -r package name; do
	echo "flaky    $package.$name: failed above, passed alone"
done <"$report/again"
