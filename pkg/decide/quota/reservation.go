package quota

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/workload"
)

// Reservation keeps nodes free from a time until another: for the gangs of a queue or a
// user, for one workload, or, as a maintenance window, for no gang. A gang that it is not
// for starts on the nodes only if it is declared to end before. It is Muster's own.
type Reservation struct {
	Name  string    `json:"name,omitempty"` // in a manifest it is in the metadata
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// Cluster of the nodes; empty for all clusters.
	Cluster string `json:"cluster,omitempty"`
	// Nodes by name, or those with all of NodeLabels.
	Nodes      []string          `json:"nodes,omitempty"`
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
	// ClusterQueue, User or Workload (its id, or namespace/name) whom the nodes are for; at
	// most one, and none in a maintenance window.
	ClusterQueue string `json:"clusterQueue,omitempty"`
	User         string `json:"user,omitempty"`
	Workload     string `json:"workload,omitempty"`
	// Evict has gangs that still run on the nodes at From evicted, with their checkpoint
	// grace; without it they run to their end.
	Evict bool `json:"evict,omitempty"`
	// Since is when By made it, and Why is the reason.
	Since time.Time `json:"since"`
	By    string    `json:"by"`
	Why   string    `json:"why,omitempty"`
}

// Covers reports whether a node is one of those reserved.
func (r *Reservation) Covers(name string, labels map[string]string) bool {
	if len(r.Nodes) > 0 {
		return slices.Contains(r.Nodes, name)
	}
	for key, value := range r.NodeLabels {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// Covering is Covers for many nodes: it looks a name up instead of comparing it with all.
func (r *Reservation) Covering() func(name string, labels map[string]string) bool {
	if len(r.Nodes) == 0 {
		return r.Covers
	}
	names := make(map[string]bool, len(r.Nodes))
	for _, name := range r.Nodes {
		names[name] = true
	}
	return func(name string, _ map[string]string) bool { return names[name] }
}

// In reports whether nodes of the cluster may be reserved.
func (r *Reservation) In(cluster string) bool { return r.Cluster == "" || r.Cluster == cluster }

// For reports whether the nodes are for a workload of a ClusterQueue.
func (r *Reservation) For(clusterQueue string, w *workload.Workload) bool {
	switch {
	case r.ClusterQueue != "":
		return r.ClusterQueue == clusterQueue
	case r.User != "":
		return r.User == w.Submitter
	case r.Workload != "":
		return r.Workload == string(w.ID) || r.Workload == w.Namespace+"/"+w.Name
	}
	return false
}

// Conflicts reports whether a gang that holds places from a time for so long would hold
// them while they are reserved. A gang that declares no run time holds them without end.
func (r *Reservation) Conflicts(from time.Time, runTime time.Duration) bool {
	return from.Before(r.Until) && (runTime <= 0 || from.Add(runTime).After(r.From))
}

// Purpose returns what the nodes are reserved for.
func (r *Reservation) Purpose() string {
	switch {
	case r.ClusterQueue != "":
		return fmt.Sprintf("ClusterQueue %q", r.ClusterQueue)
	case r.User != "":
		return fmt.Sprintf("user %q", r.User)
	case r.Workload != "":
		return fmt.Sprintf("workload %q", r.Workload)
	}
	return "maintenance"
}

// Message returns what is reserved of nodes, without the names of those whom they are for,
// because tenants read it.
func (r *Reservation) Message(nodes []string) string {
	what, purpose := fmt.Sprintf("%d nodes are", len(nodes)), "others"
	if len(nodes) == 1 {
		what = fmt.Sprintf("node %s is", nodes[0])
	}
	if r.Maintenance() {
		purpose = "maintenance"
	}
	text := fmt.Sprintf("%s reserved for %s from %s until %s (reservation %q by %s", what, purpose,
		r.From.UTC().Format(time.RFC3339), r.Until.UTC().Format(time.RFC3339), r.Name, r.By)
	if r.Why != "" {
		text += ": " + r.Why
	}
	return text + ")"
}

// Maintenance reports whether the nodes are for no gang.
func (r *Reservation) Maintenance() bool {
	return r.ClusterQueue == "" && r.User == "" && r.Workload == ""
}

// Reservations returns those of the policy, in its order. They are not to be changed.
func (t *Tree) Reservations() []Reservation { return t.config.Reservations }

// Reservations returns those of the policy of the queue.
func (q *Queue) Reservations() []Reservation { return q.tree.Reservations() }

// Bounds of a reservation.
const (
	maxReservedNodes = 20_000
	maxReservations  = 1_000
	longestReserved  = 10 * 365 * 24 * time.Hour
)

// pastKept is how long a reservation that is over is kept where there is room.
const pastKept = 7 * 24 * time.Hour

// Outdated returns the names of the reservations that go when another is made, beside as many
// more: those that ended more than seven days ago, and where there are too many still, those that
// ended first. One that is not over stays.
func Outdated(all []Reservation, more int, now time.Time) (names []string) {
	var past []Reservation
	for _, r := range all {
		if !r.Until.After(now) {
			past = append(past, r)
		}
	}
	slices.SortFunc(past, func(a, b Reservation) int { return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Name, b.Name)) })
	tooMany := len(all) + more - maxReservations
	for i, r := range past {
		if i < tooMany || now.Sub(r.Until) > pastKept {
			names = append(names, r.Name)
		}
	}
	return names
}

func (v *validation) reservations(c *Config) {
	if len(c.Reservations) > maxReservations {
		v.faults.Add("reservations", "has %d entries; want at most %d: delete those that are over", len(c.Reservations), maxReservations)
	}
	seen := map[string]string{}
	for i := range c.Reservations {
		r, path := &c.Reservations[i], fault.Index("reservations", i)
		v.clusterName(path, r.Name, seen)
		v.order(path, "reserves the nodes", r.Since, r.By, r.Why)
		switch {
		case r.From.IsZero():
			v.faults.Add(path+".from", "is missing; want a time, such as 2026-01-31T08:00:00Z")
		case !r.From.Before(r.Until):
			v.faults.Add(path+".until", "%s: want a time after from, %s", r.Until.UTC().Format(time.RFC3339), r.From.UTC().Format(time.RFC3339))
		case r.Until.Sub(r.From) > longestReserved:
			v.faults.Add(path+".until", "%s: want at most ten years after from", r.Until.UTC().Format(time.RFC3339))
		}
		if (len(r.Nodes) > 0) == (len(r.NodeLabels) > 0) {
			v.faults.Add(path+".nodes", "want either nodes, the names, or nodeLabels")
		}
		if len(r.Nodes) > maxReservedNodes {
			v.faults.Add(path+".nodes", "has %d nodes; want at most %d", len(r.Nodes), maxReservedNodes)
		}
		for j, name := range r.Nodes {
			if name == "" {
				v.faults.Add(fault.Index(path+".nodes", j), "is empty; want the name of a node")
			}
			v.line(fault.Index(path+".nodes", j), name, maxSelectorText)
		}
		if len(r.NodeLabels) > maxClusterLabels {
			v.faults.Add(path+".nodeLabels", "has %d labels; want at most %d", len(r.NodeLabels), maxClusterLabels)
		}
		for _, key := range slices.Sorted(maps.Keys(r.NodeLabels)) {
			v.line(fault.Key(path+".nodeLabels", key), r.NodeLabels[key], maxLabel)
		}
		v.purpose(path, r)
	}
}

// purpose checks whom a reservation is for.
func (v *validation) purpose(path string, r *Reservation) {
	v.line(path+".cluster", r.Cluster, maxSelectorText)
	first := ""
	for _, of := range []struct{ field, value string }{{"clusterQueue", r.ClusterQueue}, {"user", r.User}, {"workload", r.Workload}} {
		v.line(path+"."+of.field, of.value, maxSelectorText)
		switch {
		case of.value == "":
		case first != "":
			v.faults.Add(path+"."+of.field, "there is %s, too; want one of clusterQueue, user and workload, or none for maintenance", first)
		default:
			first = of.field
		}
	}
}
