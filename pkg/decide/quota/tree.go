package quota

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

// FlavorResource is the unit of quota. Flavor is empty for a resource that no quota
// bounds.
type FlavorResource struct {
	Flavor   string        `json:"flavor,omitempty"`
	Resource resource.Name `json:"resource"`
}

// Charge is an amount of a resource of a flavor.
type Charge struct {
	FlavorResource
	Amount int64 `json:"amount"`
}

// Tree is a valid Config with its usage. It is not safe for concurrent use.
type Tree struct {
	config            Config
	flavors           map[string]*Flavor
	index             map[FlavorResource]int
	names             []FlavorResource // by index
	queues            map[string]*Queue
	sorted            []*Queue
	cohorts           map[string]*node
	local             map[[2]string]*LocalQueue
	holds             map[[2]string]*QueueStop // by namespace and queue
	clusterQueueHolds map[string]*QueueStop
	clusters          map[string]*Cluster
	offered           map[string]map[string]bool // flavors, by cluster that states them
	cordons           map[string]*ClusterCordon  // by cluster
	drains            bool                       // one of them drains its cluster
	inactive          map[string]string          // why, by ClusterQueue
	levels            map[string][]string        // labels of the Topology, by flavor
	// provisioning are the configurations of the checks that ask for nodes, by check.
	provisioning map[string]*ProvisioningConfig
	// messaged are the checks that are asked by message, by name.
	messaged   map[string]*AdmissionCheck
	undoLog    []undo
	savepoints int
	// usageChanged names the queues whose usage has changed since the last TakePastUsage.
	usageChanged map[string]bool
	// usageBefore is what queues used before their usage changed, since the last Settle.
	usageBefore map[string]resource.List
	// localUsages are what LocalQueues use and used, by LocalName.
	localUsages map[string]*localUsage
	// budgetsAt is the time of the last EndBudgetStops.
	budgetsAt time.Time
	// advancedTo is the time of the last Advance or AdvanceChanged.
	advancedTo time.Time
	// capacity is what the clusters have in all. Shares of a resource without quota
	// are fractions of it.
	capacity resource.List
}

// Queue is a ClusterQueue with what it uses.
type Queue struct {
	ClusterQueue
	tree *Tree
	node *node
}

// New checks a Config and returns its Tree, with nothing used.
func New(c Config) (*Tree, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	t := &Tree{
		config: c, flavors: map[string]*Flavor{}, index: map[FlavorResource]int{}, queues: map[string]*Queue{},
		cohorts: map[string]*node{}, local: map[[2]string]*LocalQueue{}, holds: map[[2]string]*QueueStop{}, clusterQueueHolds: map[string]*QueueStop{}, clusters: map[string]*Cluster{}, offered: map[string]map[string]bool{}, cordons: map[string]*ClusterCordon{}, inactive: c.Inactive(), levels: c.levelsByFlavor(),
		usageChanged: map[string]bool{}, usageBefore: map[string]resource.List{}, localUsages: map[string]*localUsage{},
		provisioning: c.provisioningByCheck(), messaged: c.messagedChecks(),
	}
	for i := range c.Flavors {
		t.flavors[c.Flavors[i].Name] = &c.Flavors[i]
	}
	for i := range c.LocalQueues {
		l := &c.LocalQueues[i]
		t.local[[2]string{l.Namespace, l.Name}] = l
	}
	for i := range c.Holds {
		t.holds[[2]string{c.Holds[i].Namespace, c.Holds[i].Name}] = &c.Holds[i]
	}
	for i := range c.ClusterQueueHolds {
		t.clusterQueueHolds[c.ClusterQueueHolds[i].Name] = &c.ClusterQueueHolds[i]
	}
	for i := range c.Clusters {
		t.clusters[c.Clusters[i].Name] = &c.Clusters[i]
		t.offer(&c.Clusters[i])
	}
	for i := range c.ClusterCordons {
		t.cordons[c.ClusterCordons[i].Name] = &c.ClusterCordons[i]
		t.drains = t.drains || c.ClusterCordons[i].Drain
	}
	for _, co := range c.Cohorts {
		n := t.cohort(co.Name)
		n.weight = weightOf(co.FairSharing)
		t.setQuota(n, co.ResourceGroups)
	}
	for _, co := range c.Cohorts {
		if co.Parent != "" {
			t.attach(t.cohorts[co.Name], t.cohort(co.Parent))
		}
	}
	for _, q := range c.ClusterQueues {
		n := &node{name: q.Name, weight: weightOf(q.FairSharing), quota: map[int]limits{}}
		t.setQuota(n, q.ResourceGroups)
		if q.Cohort != "" {
			t.attach(n, t.cohort(q.Cohort))
		}
		t.queues[q.Name] = &Queue{ClusterQueue: q, tree: t, node: n}
		t.sorted = append(t.sorted, t.queues[q.Name])
	}
	slices.SortFunc(t.sorted, func(a, b *Queue) int { return cmp.Compare(a.Name, b.Name) })
	t.fill()
	return t, nil
}

// cohort returns the cohort of a name; a name that is only referred to makes one.
func (t *Tree) cohort(name string) *node {
	if t.cohorts[name] == nil {
		t.cohorts[name] = &node{name: name, weight: defaultWeight, quota: map[int]limits{}}
	}
	return t.cohorts[name]
}

func (t *Tree) attach(n, parent *node) {
	n.parent = parent
	parent.children = append(parent.children, n)
}

func weightOf(f *FairSharing) int64 {
	if f == nil {
		return defaultWeight
	}
	return f.WeightMilli
}

func (t *Tree) setQuota(n *node, groups []ResourceGroup) {
	for _, g := range groups {
		for _, f := range g.Flavors {
			for _, q := range f.Resources {
				own := limits{nominal: q.Nominal, borrow: -1, lend: -1}
				if q.BorrowingLimit != nil {
					own.borrow = *q.BorrowingLimit
				}
				if q.LendingLimit != nil {
					own.lend = *q.LendingLimit
				}
				n.quota[t.indexOf(FlavorResource{f.Name, q.Name})] = own
			}
		}
	}
}

func (t *Tree) indexOf(fr FlavorResource) int {
	i, known := t.index[fr]
	if !known {
		i = len(t.names)
		t.index[fr] = i
		t.names = append(t.names, fr)
	}
	return i
}

// fill computes what each node has with what its children lend.
func (t *Tree) fill() {
	var visit func(n *node)
	visit = func(n *node) {
		slices.SortFunc(n.children, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
		n.subtree, n.usage = make([]int64, len(t.names)), make([]int64, len(t.names))
		for i, own := range n.quota {
			n.subtree[i] = own.nominal
		}
		for _, child := range n.children {
			visit(child)
			n.height = max(n.height, child.height+1)
			for i := range n.subtree {
				n.subtree[i] = add(n.subtree[i], child.subtree[i]-child.guaranteed(i))
			}
		}
	}
	for _, n := range t.cohorts {
		if n.parent == nil {
			visit(n)
		}
	}
	for _, q := range t.sorted {
		if q.node.parent == nil {
			visit(q.node)
		}
	}
}

// Config returns the configuration of the Tree.
func (t *Tree) Config() Config { return t.config }

// Queue returns the ClusterQueue of a name, nil when there is none.
func (t *Tree) Queue(name string) *Queue { return t.queues[name] }

// Queues returns all ClusterQueues by name.
func (t *Tree) Queues() []*Queue { return t.sorted }

// Ensure returns the ClusterQueue of a name, and makes one without quota if it is not
// configured.
func (t *Tree) Ensure(name string) *Queue {
	if q := t.queues[name]; q != nil {
		return q
	}
	n := &node{name: name, weight: defaultWeight, quota: map[int]limits{}}
	n.subtree, n.usage = make([]int64, len(t.names)), make([]int64, len(t.names))
	q := &Queue{ClusterQueue: ClusterQueue{Name: name}, tree: t, node: n}
	t.queues[name] = q
	i, _ := slices.BinarySearchFunc(t.sorted, name, func(q *Queue, name string) int { return cmp.Compare(q.Name, name) })
	t.sorted = slices.Insert(t.sorted, i, q)
	return q
}

// Local returns the LocalQueue of a namespace, nil when there is none.
func (t *Tree) Local(namespace, name string) *LocalQueue { return t.local[[2]string{namespace, name}] }

// Leads returns the name of the ClusterQueue that workloads of a queue in a namespace are
// charged to: that of its LocalQueue, or one of the queue's name.
func (t *Tree) Leads(namespace, queue string) string {
	if local := t.Local(namespace, queue); local != nil {
		return local.ClusterQueue
	}
	return queue
}
