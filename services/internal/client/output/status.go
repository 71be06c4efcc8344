package output

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// Status writes how Muster's own parts are. Ages are by the clock of who answered.
func Status(w io.Writer, a query.StatusAnswer) error {
	err := writeFields(w, []field{
		{"Leader", leader(a)}, {"Workloads", counts(a.Workloads)}, {"Held", strings.Join(a.Held, "; ")},
		{"Postgres", postgres(a.Postgres)}, {"NATS", nats(a.NATS)},
	})
	if err != nil {
		return err
	}
	if err := section(w, "Clusters", Clusters(a.Clusters, a.At)); err != nil {
		return err
	}
	if err := section(w, "Streams", streams(a.NATS.Streams)); err != nil {
		return err
	}
	if len(a.Attention) == 0 {
		if _, err := fmt.Fprint(w, "\nNothing needs attention.\n"); err != nil {
			return err
		}
	}
	if err := lines(w, "Needs attention", a.Attention); err != nil {
		return err
	}
	return lines(w, "Notes", a.Notes)
}

// lines writes a list under a title; nothing for an empty one.
func lines(w io.Writer, title string, all []string) error {
	if len(all) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\n%s:\n", title); err != nil {
		return err
	}
	for _, line := range all {
		if _, err := fmt.Fprintf(w, "  %s\n", Cell(line)); err != nil {
			return err
		}
	}
	return nil
}

func leader(a query.StatusAnswer) string {
	switch l := a.Leader; {
	case l == nil:
		return "unknown"
	case !l.Leads:
		return fmt.Sprintf("none; the last was %s, epoch %d", l.Holder, l.Epoch)
	default:
		return fmt.Sprintf("%s for %s, epoch %d, %d standing by", l.Holder, age(l.Since, a.At), l.Epoch, l.Standbys)
	}
}

// counts lists the phases that have workloads, in the order of a life.
func counts(of map[workload.Phase]int) string {
	var parts []string
	for _, phase := range workload.Phases() {
		if n := of[phase]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, phase))
		}
	}
	if of != nil && len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func postgres(p query.PostgresStatus) string {
	if p.Silent != "" {
		return "silent: " + p.Silent
	}
	followers := "no standby"
	switch {
	case p.Followers > 0 && p.LagBytes != nil:
		followers = fmt.Sprintf("%s, %s behind", standbys(p.Followers), size(uint64(*p.LagBytes)))
	case p.Followers > 0:
		followers = standbys(p.Followers) + ", lag unknown (grant pg_read_all_stats to see it)"
	}
	return fmt.Sprintf("%s, %d of %d connections, %s, %s", p.Version, p.Connections, p.MaxConnections, size(uint64(p.Bytes)), followers)
}

func standbys(n int) string {
	if n == 1 {
		return "1 standby"
	}
	return fmt.Sprintf("%d standbys", n)
}

func nats(n query.NATSStatus) string {
	if n.Version == "" {
		return "silent: " + n.Silent
	}
	servers := "server " + n.Server
	if n.Cluster != "" {
		servers = fmt.Sprintf("cluster %s of %d servers, connected to %s", n.Cluster, n.Servers, n.Server)
	}
	stored := size(n.StoredBytes) + " stored"
	switch {
	case n.Silent != "":
		stored = "storage unknown: " + n.Silent
	case n.LimitBytes > 0:
		stored = size(n.StoredBytes) + " stored of " + size(n.LimitBytes)
	}
	return fmt.Sprintf("%s, %s, %s", n.Version, servers, stored)
}

func streams(all []query.StreamStatus) Table {
	t := Table{Header: []string{"NAME", "MESSAGES", "SIZE", "LIMIT", "FULL", "COPIES", "LEADER"}}
	for _, s := range all {
		row := []string{s.Name, strconv.FormatUint(s.Messages, 10), size(s.Bytes), "-", "-", strconv.Itoa(s.Copies), dash(s.Leader)}
		if s.LimitBytes > 0 {
			row[3], row[4] = size(s.LimitBytes), fmt.Sprintf("%d%%", s.Bytes*100/s.LimitBytes)
		}
		if len(s.Away) > 0 {
			row[5] += fmt.Sprintf(" (%d offline)", len(s.Away))
		}
		if s.Silent != "" {
			row = []string{s.Name, "silent: " + s.Silent}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// size writes bytes with a unit, to two digits or more.
func size(bytes uint64) string {
	if bytes < 1<<10 {
		return fmt.Sprintf("%d B", bytes)
	}
	unit, suffix := uint64(1), ""
	for _, next := range []string{"Ki", "Mi", "Gi", "Ti"} {
		if bytes < unit<<10 {
			break
		}
		unit, suffix = unit<<10, next
	}
	whole, rest := bytes/unit, bytes%unit
	if tenth := rest * 10 / unit; whole < 10 && rest > 0 && tenth > 0 {
		return fmt.Sprintf("%d.%d%s", whole, tenth, suffix)
	}
	return fmt.Sprintf("%d%s", whole, suffix)
}

// heard is the age of a last report.
func heard(then, now time.Time) string {
	if then.IsZero() {
		return "never"
	}
	return age(then, now) + " ago"
}
