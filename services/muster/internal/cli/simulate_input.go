package cli

import (
	"cmp"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/scenario"
	"muster.dev/muster/pkg/whatif/simulation"
	"muster.dev/muster/pkg/whatif/submissions"
	"muster.dev/muster/services/internal/client/exit"
)

// namedSite is a site under the name of its policy.
type namedSite struct {
	name string
	simulation.Site
}

// sites returns the sites to simulate. Without --fleet they have no nodes yet.
func (o *simulateOptions) sites(cmd *cobra.Command) ([]namedSite, error) {
	switch {
	case o.trace == "" && o.model.name == "":
		return nil, exit.Usagef("--trace is missing; want a file, or --model %s", lublinName)
	case o.trace != "" && o.model.name != "":
		return nil, exit.Usagef("--trace %s and --model %s: want one of them", o.trace, o.model.name)
	case o.model.name == "" && firstChanged(cmd, "jobs", "seed", "load") != "":
		return nil, exit.Usagef("--%s without --model: a trace has its own jobs", firstChanged(cmd, "jobs", "seed", "load"))
	case o.eta && len(o.windows) > 0:
		return nil, exit.Usagef("--eta and --windows: want one of them")
	case o.diagram != "" && (!o.eta || len(o.policies) > 1):
		return nil, exit.Usagef("--diagram %s: want --eta and one policy", o.diagram)
	case o.urgent < 0 || o.urgent > 100:
		return nil, exit.Usagef("--urgent %d: want 0 to 100 percent", o.urgent)
	}
	if o.fleet != "" && cmd.Flags().Changed("nodes") {
		return nil, exit.Usagef("--nodes %d and --fleet %s: want one of them", o.nodes, o.fleet)
	}
	if o.queue != "" && o.queues == "" {
		return nil, exit.Usagef("--queue %s without --queues: the only queue is the one that --policy makes", o.queue)
	}
	if o.queues != "" && cmd.Flags().Changed("policy") {
		return nil, exit.Usagef("--policy %s and --queues %s: want one of them", strings.Join(o.policies, ","), o.queues)
	}
	nodes, err := o.fleetNodes(cmd)
	if err != nil {
		return nil, err
	}
	if o.queues != "" {
		site, err := o.ownQueues(cmd)
		site.Nodes = nodes
		return []namedSite{{o.queues, site}}, err
	}
	if len(o.policies) == 0 {
		return nil, exit.Usagef("--policy is empty; want one or more of %s", strings.Join(policyNames(), ", "))
	}
	var sites []namedSite
	for _, name := range o.policies {
		policy, err := simulation.ParsePolicy(name)
		if err != nil {
			return nil, exit.Usagef("%w", err)
		}
		if o.urgent > 0 {
			policy = policy.Preempting()
		}
		sites = append(sites, namedSite{policy.Name, policy.On(nodes)})
	}
	o.queue = sites[0].Queues[0].Name
	return sites, nil
}

func (o *simulateOptions) fleetNodes(cmd *cobra.Command) ([]capacity.Node, error) {
	if o.fleet == "" {
		return nil, nil
	}
	content, err := readFile(o.fleet, cmd.InOrStdin())
	if err != nil {
		return nil, exit.Usagef("fleet: %w", err)
	}
	nodes, err := scenario.ReadFleet(content)
	if err != nil {
		return nil, exit.Usagef("%w", fault.Of(err).In(o.fleet))
	}
	return nodes, nil
}

// ownQueues returns a site with the queues of --queues.
func (o *simulateOptions) ownQueues(cmd *cobra.Command) (simulation.Site, error) {
	file, err := readQueuesFile(cmd, o.queues)
	if err != nil {
		return simulation.Site{}, err
	}
	site := simulation.Site{Policy: file.Config}
	for _, q := range file.Queues {
		site.Queues = append(site.Queues, state.Queue{Name: q.Name, Namespaces: q.Namespaces, Strategy: q.Strategy, Rules: q.Rules})
	}
	if o.queue == "" && len(site.Queues) == 1 {
		o.queue = site.Queues[0].Name
	}
	return site, nil
}

// jobs reads the jobs, and completes the sites with as many nodes as the log has where
// there is no fleet.
func (o *simulateOptions) jobs(cmd *cobra.Command, sites []namedSite) ([]simulation.Job, simulation.Left, []namedSite, error) {
	var left simulation.Left
	shape, err := o.shape()
	if err != nil {
		return nil, left, nil, err
	}
	read, err := o.read(cmd, shape)
	if err != nil {
		return nil, left, nil, err
	}
	if read.Log != nil && o.queue == "" {
		return nil, left, nil, exit.Usagef("--queue is missing; %s has several queues, and the log does not name the queues of its jobs", o.queues)
	}
	most := 0
	if o.fleet == "" {
		if most, err = o.size(cmd, read); err != nil {
			return nil, left, nil, err
		}
		for i := range sites {
			sites[i].Nodes = simulation.Alike(most)
		}
	}
	jobs, left, err := read.Jobs(most)
	if err != nil {
		return nil, left, nil, exit.Usagef("%s: %w", o.source(), err)
	}
	return jobs, left, sites, nil
}

// source names what is simulated.
func (o *simulateOptions) source() string {
	if o.model.name != "" {
		return "--model " + o.model.name
	}
	return o.trace
}

// read reads the log, or makes one.
func (o *simulateOptions) read(cmd *cobra.Command, shape submissions.Options) (submissions.File, error) {
	if o.model.name != "" {
		log, err := o.model.log(o.nodes)
		return submissions.Of(log, shape), err
	}
	in := cmd.InOrStdin()
	if o.trace != "-" {
		file, err := os.Open(o.trace)
		if err != nil {
			return submissions.File{}, exit.Usagef("%w", fault.Of(err).In(o.trace))
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	read, err := submissions.Read(in, shape)
	if err != nil {
		return read, exit.Usagef("%w", fault.Of(err).In(o.trace))
	}
	return read, nil
}

// shape returns what the log leaves open.
func (o *simulateOptions) shape() (submissions.Options, error) {
	shape := submissions.Options{Queue: o.queue, KnownRunTimes: o.known}
	switch {
	case o.fleet == "" && o.pod != "":
		return shape, exit.Usagef("--pod %s without --fleet: nodes of one processor have nothing else to offer", o.pod)
	case o.fleet == "":
		return shape, nil
	}
	shape.Pod = resource.List{}
	for _, part := range strings.Split(cmp.Or(o.pod, "cpu=1"), ",") {
		name, text, is := strings.Cut(part, "=")
		if !is || name == "" {
			return shape, exit.Usagef("--pod: %q: want a resource and an amount, such as nvidia.com/gpu=1", part)
		}
		amount, err := resource.Parse(resource.Name(name), text)
		if err != nil {
			return shape, exit.Usagef("--pod: %w", err)
		}
		shape.Pod[resource.Name(name)] = amount
	}
	return shape, nil
}

// size is the number of nodes to simulate.
func (o *simulateOptions) size(cmd *cobra.Command, read submissions.File) (int, error) {
	if read.Log == nil {
		return 0, exit.Usagef("--fleet is missing; %s has what its pods request, and --fleet what the nodes have", o.source())
	}
	nodes, given := int64(o.nodes), cmd.Flags().Changed("nodes")
	from := "--nodes"
	for _, header := range []string{"MaxNodes", "MaxProcs"} {
		if !given {
			if nodes, given = read.Log.Number(header); given {
				from = o.source() + ": " + header
			}
		}
	}
	switch {
	case !given:
		return 0, exit.Usagef("%s has neither MaxNodes nor MaxProcs; set the number of nodes with --nodes", o.source())
	case nodes < 1 || nodes > simulation.MostNodes:
		return 0, exit.Usagef("%s %d: want 1 to %d; set the number of nodes with --nodes", from, nodes, simulation.MostNodes)
	}
	return int(nodes), nil
}
