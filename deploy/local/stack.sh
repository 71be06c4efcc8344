#!/usr/bin/env bash
# Runs the local stack (muster-dev) in the background.
#
#   stack.sh up [FLAG...]   start it, wait until it serves, print how to use it;
#                           the flags are muster-dev's
#   stack.sh down           stop it; nothing of it is left but its log
set -euo pipefail
cd "$(dirname "$0")/../.."

state=$PWD/.devstate
pidfile=$state/muster-dev.pid
log=$state/muster-dev.log
kubeconfig=$state/kubeconfig
start_limit=180
stop_limit=60

# running prints the process id of the stack if it runs.
running() {
	local pid
	pid=$(cat "$pidfile" 2>/dev/null) || return 1
	# The id may have gone to another process since.
	[ -r "/proc/$pid/cmdline" ] && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q 'muster-dev up' || return 1
	echo "$pid"
}

up() {
	local pid began=$SECONDS
	if pid=$(running); then
		echo "the local stack runs already (process $pid)"
		usage
		return
	fi
	mkdir -p "$state"
	setsid bin/muster-dev up "$@" >"$log" 2>&1 </dev/null &
	pid=$!
	echo "$pid" >"$pidfile"
	echo "starting the local stack (log: $log)"
	sleep 0.5 # a second stack gives up at once
	until env -u MUSTER_NATS_URL bin/muster get queues >/dev/null 2>&1; do
		if ! running >/dev/null; then
			echo "muster-dev ended before it was ready; its last words:" >&2
			tail -n 20 "$log" >&2
			rm -f "$pidfile"
			exit 1
		fi
		if [ $((SECONDS - began)) -ge $start_limit ]; then
			echo "not ready after $start_limit s; the log's end:" >&2
			tail -n 20 "$log" >&2
			down
			exit 1
		fi
		sleep 0.5
	done
	if ! running >/dev/null; then # who answers is another one
		echo "muster-dev ended; its last words:" >&2
		tail -n 20 "$log" >&2
		rm -f "$pidfile"
		exit 1
	fi
	echo "ready after $((SECONDS - began)) s (process $pid)"
	usage
}

# usage prints how to use the stack. The kubeconfig of its own cluster gets a path that is the
# same for every stack; with KUBECONFIG the stack uses a cluster of yours.
usage() {
	if [ -z "${KUBECONFIG:-}" ]; then
		(umask 077 && cp -- "$(awk '$1 == "kubeconfig" { print $2; exit }' "$log")" "$kubeconfig")
	fi
	echo "the kubeconfig of its cluster is ${KUBECONFIG:-$kubeconfig}"
	cat <<-MESSAGE

		  export KUBECONFIG=${KUBECONFIG:-$kubeconfig}
		$(sed -n 's/^  HTTP  *\(export .*\)/  \1    for the HTTP API; muster needs neither/p' "$log")
		$(sed -n 's/^  console  *\(http[^;]*\); \(.*\)/  open \1    the console; \2/p' "$log")
		  bin/muster submit -f FILE --wait=running    submit a RayCluster or RayJob (services/muster/examples)
		  bin/muster get workloads                    what there is
		  bin/muster get nodes                        what is free
		  bin/muster events --follow                  what happens
		  make down                                   stop it
	MESSAGE
}

down() {
	local pid
	rm -f "$kubeconfig"
	if ! pid=$(running); then
		echo "the local stack does not run"
		rm -f "$pidfile"
		return
	fi
	kill -TERM "$pid"
	for ((i = 0; i < stop_limit * 10; i++)); do
		if ! running >/dev/null; then
			rm -f "$pidfile"
			echo "the local stack has stopped"
			return
		fi
		sleep 0.1
	done
	echo "process $pid has not ended within $stop_limit s; see $log" >&2
	exit 1
}

case "${1:-}" in
up) shift && up "$@" ;;
down) down ;;
*) sed -n '2,7s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
