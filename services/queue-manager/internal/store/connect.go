package store

import (
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sys/unix"
)

// Timeouts bound what a stuck statement, transaction or connection can hold up.
type Timeouts struct {
	Statement time.Duration
	// Lock bounds the wait for a lock.
	Lock time.Duration
	// Idle bounds how long a transaction may be idle.
	Idle time.Duration
	// Peer bounds the time until either side gives up a peer that does not answer:
	// TCP keepalives and unacknowledged data.
	Peer time.Duration
}

// DefaultTimeouts let a successor take over within seconds.
func DefaultTimeouts() Timeouts {
	return Timeouts{Statement: 15 * time.Second, Lock: 5 * time.Second, Idle: 5 * time.Second, Peer: 3 * time.Second}
}

// connectTimeout bounds a connection to one host until it can be used, unless the URL
// says it (connect_timeout): a host that stands still must not keep the next one from
// being tried.
const connectTimeout = 5 * time.Second

// configure sets the timeouts on the server's side of each session, and on ours.
func (t Timeouts) configure(config *pgxpool.Config) {
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	params := config.ConnConfig.RuntimeParams
	params["application_name"] = "muster-queue-manager"
	params["statement_timeout"] = fmt.Sprint(t.Statement.Milliseconds())
	params["lock_timeout"] = fmt.Sprint(t.Lock.Milliseconds())
	params["idle_in_transaction_session_timeout"] = fmt.Sprint(t.Idle.Milliseconds())
	params["jit"] = "off" // statements are short, and run thousands of times
	seconds := max(1, int(t.Peer/time.Second))
	params["tcp_keepalives_idle"] = "1"
	params["tcp_keepalives_interval"] = "1"
	params["tcp_keepalives_count"] = fmt.Sprint(seconds)
	params["tcp_user_timeout"] = fmt.Sprint(t.Peer.Milliseconds())
	dialer := &net.Dialer{
		Timeout:         t.Peer,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: seconds},
		Control: func(network, _ string, raw syscall.RawConn) error {
			if network == "unix" {
				return nil
			}
			var failed error
			err := raw.Control(func(fd uintptr) {
				failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(t.Peer.Milliseconds()))
			})
			if err != nil {
				return err
			}
			return failed
		},
	}
	config.ConnConfig.DialFunc = dialer.DialContext
	config.AfterConnect = useManyBytes
}
