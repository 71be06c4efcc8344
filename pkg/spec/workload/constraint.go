package workload

// HostPort is a port of the node that a pod asks for, as in Kubernetes. Two
// pods with the same port and protocol cannot share a node, unless both name an
// address and the addresses differ.
type HostPort struct {
	Port     int32  `json:"port"`
	Protocol string `json:"protocol,omitempty"` // empty is TCP
	IP       string `json:"ip,omitempty"`       // empty is every address of the node
}

// Together keeps all pods of its own pod set and of those named in one domain:
// on nodes with the same value of the label. It is required pod affinity within
// the gang.
type Together struct {
	TopologyKey string   `json:"topologyKey"`
	PodSets     []string `json:"podSets,omitempty"` // besides its own
}

// Apart keeps pods of its own pod set out of the domains in which pods of the
// named ones are; naming its own set allows one pod of it per domain. Nodes
// without the label are in no domain. It is required pod anti-affinity within
// the gang.
type Apart struct {
	TopologyKey string   `json:"topologyKey"`
	PodSets     []string `json:"podSets"`
}

// Spread keeps the numbers of the pod set's pods in any two domains within
// MaxSkew. Domains are the label's values on nodes that the template's selector
// and affinity match, whether or not such a node takes pods; with fewer than
// MinDomains of them none may have more than MaxSkew. It is a topology spread
// constraint with DoNotSchedule that counts the pods of its own set.
type Spread struct {
	TopologyKey string `json:"topologyKey"`
	MaxSkew     int    `json:"maxSkew"`
	MinDomains  int    `json:"minDomains,omitempty"`
}

// Modes of a topology request.
const (
	TopologyRequired  = "required"  // all pods of the set in one domain
	TopologyPreferred = "preferred" // in as few domains as possible
)

// Topology is how near to each other a pod set's pods must be.
type Topology struct {
	// Mode is required, preferred, or empty when only slices matter; Level is the
	// node label whose values are the domains. Once the set has a flavor with a Topology,
	// the labels of the levels above come before it, with commas between them.
	Mode  string `json:"mode,omitempty"`
	Level string `json:"level,omitempty"`
	// SliceSize pods each stay together in one domain of SliceLevel; the count of
	// the pod set is a multiple of it. 0 and 1 mean no slices.
	SliceSize  int    `json:"sliceSize,omitempty"`
	SliceLevel string `json:"sliceLevel,omitempty"`
	// Within is empty until the set has a flavor with a Topology: the labels of its levels down
	// to the one above single nodes, with commas between them. Within a domain of Level
	// the set takes few domains of the levels below it, too.
	Within string `json:"-"`
}

// Conflicts reports whether two pods with these ports cannot share a node.
func (p HostPort) Conflicts(q HostPort) bool {
	return p.Port == q.Port && p.protocol() == q.protocol() && (p.everywhere() || q.everywhere() || p.IP == q.IP)
}

func (p HostPort) protocol() string {
	if p.Protocol == "" {
		return "TCP"
	}
	return p.Protocol
}

func (p HostPort) everywhere() bool { return p.IP == "" || p.IP == "0.0.0.0" }
