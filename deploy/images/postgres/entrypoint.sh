#!/bin/bash
# Starts Postgres in its container: makes the database on the first start, as the
# variables of the official image say, then becomes the server.
#
#   POSTGRES_USER              superuser (postgres)
#   POSTGRES_PASSWORD          its password; must be given, or in
#   POSTGRES_PASSWORD_FILE     a file
#   POSTGRES_DB                database to make (the user's name)
#   POSTGRES_INITDB_ARGS       further arguments of initdb
#   POSTGRES_HOST_AUTH_METHOD  of connections over the network (scram-sha-256)
#   PGDATA                     where the database is
#
# *.sh, *.sql and *.sql.gz in /docker-entrypoint-initdb.d are run once, in the
# order of their names. POSTGRES_USER, POSTGRES_DB and POSTGRES_INITDB_ARGS may
# come from a file too, named by the variable with _FILE behind it.
set -Eeuo pipefail

say() { echo "entrypoint: $*" >&2; }

# from_file NAME DEFAULT sets a variable from the file that NAME_FILE names.
from_file() {
	local name=$1 file_name=${1}_FILE value=$2
	if [ -n "${!name:-}" ] && [ -n "${!file_name:-}" ]; then
		say "$name and $file_name are both set" && exit 1
	fi
	if [ -n "${!name:-}" ]; then value=${!name}; fi
	if [ -n "${!file_name:-}" ]; then value=$(<"${!file_name}"); fi
	export "$name=$value"
	unset "$file_name"
}

# make_database creates the database in another directory and moves it into place last,
# so that an interrupted start begins again.
make_database() {
	local fresh=$PGDATA/.new
	if [ -e "$fresh" ]; then
		say "an earlier start died while it made the database; beginning again"
		find "$PGDATA" -mindepth 1 -delete
	fi
	mkdir "$fresh" && chmod 0700 "$fresh"
	# Words, as in the official image.
	# shellcheck disable=SC2206
	local arguments=(--pgdata="$fresh" --username="$POSTGRES_USER" $POSTGRES_INITDB_ARGS)
	if [ -n "$POSTGRES_PASSWORD" ]; then
		initdb --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") "${arguments[@]}"
	else
		initdb "${arguments[@]}"
	fi
	printf '\nhost all all all %s\n' "${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}" >>"$fresh/pg_hba.conf"

	# For the scripts only: not reachable over the network.
	pg_ctl --pgdata="$fresh" --wait --options="-c listen_addresses=''" start
	export PGUSER=$POSTGRES_USER PGPASSWORD=$POSTGRES_PASSWORD
	if [ "$POSTGRES_DB" != postgres ]; then createdb "$POSTGRES_DB"; fi
	export PGDATABASE=$POSTGRES_DB
	run_scripts
	pg_ctl --pgdata="$fresh" --wait --mode=fast stop
	unset PGUSER PGPASSWORD PGDATABASE

	find "$fresh" -mindepth 1 -maxdepth 1 ! -name PG_VERSION -exec mv -t "$PGDATA" {} +
	sync
	mv "$fresh/PG_VERSION" "$PGDATA/"
	rmdir "$fresh"
}

run_scripts() {
	local script
	for script in /docker-entrypoint-initdb.d/*; do
		case $script in
		*.sh) if [ -x "$script" ]; then "$script"; else . "$script"; fi ;;
		*.sql) psql -v ON_ERROR_STOP=1 --no-password --no-psqlrc -f "$script" ;;
		*.sql.gz) gunzip -c "$script" | psql -v ON_ERROR_STOP=1 --no-password --no-psqlrc ;;
		esac
	done
}

if [ "${1:-}" = "" ] || [ "${1#-}" != "$1" ]; then set -- postgres "$@"; fi
if [ "$1" != postgres ]; then exec "$@"; fi

mkdir -p "$PGDATA"
if [ "$(id -u)" = 0 ]; then # a volume may come with root as its owner
	chown -R postgres:postgres "$PGDATA" /run/postgresql
	exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$0" "$@"
fi
chmod 0700 "$PGDATA" || true # not ours to change, then Postgres says so
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	from_file POSTGRES_PASSWORD ""
	from_file POSTGRES_USER postgres
	from_file POSTGRES_DB "$POSTGRES_USER"
	from_file POSTGRES_INITDB_ARGS ""
	if [ -z "$POSTGRES_PASSWORD" ] && [ "${POSTGRES_HOST_AUTH_METHOD:-}" != trust ]; then
		say "POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE must be set" && exit 1
	fi
	make_database
fi
rmdir "$PGDATA/.new" 2>/dev/null || true
unset POSTGRES_PASSWORD
# The server listens on all addresses of its container, as the official image's.
exec "$1" -c listen_addresses='*' "${@:2}"
