#!/usr/bin/env bash
# Runs the local stack in containers (docker-compose.yaml) in the background.
#
#   compose.sh able    succeed if this machine can; print why not
#   compose.sh up      start it, wait until it serves, print how to use it
#   compose.sh down    stop it; nothing of it is left but the images and the secrets
set -euo pipefail
cd "$(dirname "$0")/../.."

secrets=${MUSTER_SECRETS:-.devstate/compose}
start_limit=180
kubeconfig=.devstate/kubeconfig

# compose is Compose as this machine has it.
compose() {
	if docker compose version >/dev/null 2>&1; then
		docker compose "$@"
	else
		docker-compose "$@"
	fi
}

# ours lists the containers of this directory's stack.
ours() {
	docker ps --all --quiet --filter "label=com.docker.compose.project.working_dir=$PWD" 2>/dev/null
}

able() {
	if ! docker version >/dev/null 2>&1; then
		echo "no Docker engine answers"
		return 1
	fi
	if ! docker compose version >/dev/null 2>&1 && ! command -v docker-compose >/dev/null; then
		echo "a Docker engine answers, but there is no docker compose"
		return 1
	fi
	if [ -z "${MUSTER_POSTGRES_IMAGE:-}" ] && ! docker image inspect muster-postgres:15 >/dev/null 2>&1 &&
		! deploy/local/machine.sh install images; then
		echo "a Docker engine answers, but the image of Postgres cannot be made"
		return 1
	fi
}

up() {
	local began=$SECONDS port=${MUSTER_NATS_PORT:-4222}
	compose up --detach
	until env MUSTER_NATS_URL="tls://127.0.0.1:$port" MUSTER_NATS_CREDENTIALS="$secrets/operator.nk" \
		MUSTER_NATS_CA="$secrets/ca.crt" MUSTER_NATS_CERTIFICATE="$secrets/client.crt" MUSTER_NATS_KEY="$secrets/client.key" \
		bin/muster get queues >/dev/null 2>&1; do
		if [ $((SECONDS - began)) -ge $start_limit ]; then
			echo "not ready after $start_limit s:" >&2
			compose ps >&2
			exit 1
		fi
		sleep 0.5
	done
	mkdir -p .devstate
	(umask 077 && compose exec -T devcluster devcluster kubeconfig >$kubeconfig)
	echo "ready after $((SECONDS - began)) s; the kubeconfig of its cluster is $PWD/$kubeconfig"
	cat <<-MESSAGE

		  export KUBECONFIG=$PWD/$kubeconfig
		  export MUSTER_NATS_URL=tls://127.0.0.1:$port MUSTER_NATS_CREDENTIALS=$PWD/$secrets/operator.nk
		  export MUSTER_NATS_CA=$PWD/$secrets/ca.crt MUSTER_NATS_CERTIFICATE=$PWD/$secrets/client.crt MUSTER_NATS_KEY=$PWD/$secrets/client.key

		  bin/muster submit -f FILE --wait=running    submit a RayCluster or RayJob (services/muster/examples)
		  bin/muster get workloads                    what there is
		  bin/muster get nodes                        what is free
		  bin/muster events --follow                  what happens
		  COMPOSE_PROFILES=console make up            the console too, at https://127.0.0.1:${MUSTER_CONSOLE_PORT:-8444}
		  make down                                   stop it
	MESSAGE
}

down() {
	if [ -z "$(ours)" ]; then
		return
	fi
	COMPOSE_PROFILES=console compose down --volumes --remove-orphans # the console too, where it runs
	rm -f $kubeconfig
	echo "the containers, networks and volumes of the local stack are gone"
}

case "${1:-}" in
able) able ;;
up) up ;;
down) down ;;
*) sed -n '2,6s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
