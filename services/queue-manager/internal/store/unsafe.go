package store

import (
	"context"
	"net"
)

// Unsafe says in what this login, or the connection, has more rights or less
// protection than the service needs. It is for a warning: a trial may do without.
func (s *Store) Unsafe(ctx context.Context) []string {
	var superuser, owner, encrypted bool
	err := s.pool.QueryRow(ctx, `
		SELECT r.rolsuper, pg_has_role(current_user, c.relowner, 'MEMBER'),
			coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)
		FROM pg_roles r, pg_class c WHERE r.rolname = current_user AND c.oid = to_regclass('leader')`).Scan(&superuser, &owner, &encrypted)
	if err != nil {
		return nil // whatever is wrong will be told by the work itself
	}
	var notes []string
	switch {
	case superuser:
		notes = append(notes, "the login in Postgres is a superuser; make one that is a member of muster_queue_manager and nothing else")
	case owner:
		notes = append(notes, "the login in Postgres owns the schema; make one that is a member of muster_queue_manager and nothing else")
	}
	if host := s.pool.Config().ConnConfig.Host; !encrypted && !local(host) {
		notes = append(notes, "the connection to Postgres at "+host+" is not encrypted; put sslmode=verify-full and sslrootcert into the database URL")
	}
	return notes
}

// local reports whether a host of a database URL is this machine: loopback, or
// the directory of a socket.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || len(host) > 0 && host[0] == '/' || ip != nil && ip.IsLoopback()
}
