package output

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Cluster is what `cluster describe` prints.
type Cluster struct {
	query.ClusterStatus
	Workloads []workload.Record `json:"workloads"` // those with places in it that have not ended
}

// DescribeCluster writes a cluster and the workloads with places in it.
func DescribeCluster(w io.Writer, d Cluster, asked time.Time) error {
	fields := []field{
		{"Name", d.Name}, {"State", d.State}, {"Nodes", strconv.Itoa(d.Nodes) + ", ready " + strconv.Itoa(d.ReadyNodes)},
		{"Holding places", strconv.Itoa(d.Live)}, // with those that have ended and whose pods remain
		{"Watcher heard", heard(d.WatcherHeard, asked)}, {"Dispatcher heard", heard(d.DispatcherHeard, asked)},
	}
	if !d.FailedOver.IsZero() {
		fields = append(fields, field{"Failed over", heard(d.FailedOver, asked)})
	}
	if d.Silent != "" {
		fields = append(fields, field{"Not known", d.Silent})
	}
	if d.Cordon != nil {
		fields = append(fields, field{"Cordon", d.Cordon.Message()})
	}
	fields = append(fields, field{"Queues", namesOrAll(d.Queues)}, field{"Flavors", namesOrAll(d.Flavors)})
	name := "Labels" // the first has it
	for _, key := range slices.Sorted(maps.Keys(d.Labels)) {
		fields = append(fields, field{name, key + "=" + d.Labels[key]})
		name = ""
	}
	name = "Cost per hour"
	for _, of := range slices.Sorted(maps.Keys(d.Cost)) {
		fields = append(fields, field{name, string(of) + " " + resource.Format(resource.CPU, d.Cost[of])}) // thousandths, as of CPU
		name = ""
	}
	if err := writeFields(w, fields); err != nil {
		return err
	}
	places := Table{Header: []string{"NAMESPACE", "NAME", "KIND", "QUEUE", "PHASE", "PODS"}}
	for i := range d.Workloads {
		r := &d.Workloads[i]
		places.Rows = append(places.Rows, []string{r.Namespace, r.Name, r.Kind, r.Queue, Phase(r), strconv.Itoa(r.Pods())})
	}
	return section(w, "Workloads", places)
}

// namesOrAll lists what a cluster takes or offers; none stands for all.
func namesOrAll(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, ", ")
}
