package placement

// search is the exact search for some kinds of a gang.
type search struct {
	fleet *Fleet
	kinds []*kind
	rules []rule      // on these kinds, by their index here
	most  countVector // pods of each kind
	left  *int        // steps

	levels     []string // labels, the widest domains first
	topologies []*topology
	needs      []int         // by kind: levels whose label a node must have
	counted    [][]bool      // by rule and domain: whether a spread counts it
	empty      []int         // by rule: counted domains without a node that takes any pod
	floor      []int         // by rule: the least number of a spread, as being tried
	floors     bool          // some floor is above 0
	units      []countVector // by level and kind: multiples in which numbers change
	forms      map[string]*form
	numbers    map[*form]int
	leaves     map[leafKey]*form
}

// paretoFrontier is what some nodes take together: the largest count vectors, none of
// which covers another. Any vector that one of them covers is possible, too, except for
// rules on multiples and least numbers. It has how each was composed.
type paretoFrontier struct {
	largest []countVector
	// from is of which of left and right each is the sum, or, when right is
	// nil, of which of left it is what rules leave.
	from        [][2]int
	left, right *paretoFrontier
	form        *form // of a single domain or node
	low         countVector
	spans       int // number of domains or nodes
}

// countVector is a number of pods of each kind.
type countVector []int

func (c countVector) covers(other countVector) bool {
	for i := range c {
		if c[i] < other[i] {
			return false
		}
	}
	return true
}

// form is domains, or nodes, that are alike: they take the same pods in the same
// ways. The search works on forms, so its cost does not grow with how often one
// occurs.
type form struct {
	level int // of search.levels; leaf for nodes, root for the whole fleet
	// bare: the domain of nodes that lack the label.
	bare bool
	// counted is, by rule, whether a spread counts the domain.
	counted []bool
	parts   []part
	largest []countVector // of a node
	ready   *paretoFrontier
}

const (
	leaf = -1
	root = -2
)

// part is the domains of one form within a domain.
type part struct {
	form *form
	n    int
}

type leafKey struct {
	group   *group
	missing int // labels, by level
}

// spend takes steps off the budget. Call it before the work that they pay for, and do
// not do the work when spent reports true.
func (s *search) spend(steps int) { *s.left = max(0, *s.left-steps) }

func (s *search) spent() bool { return *s.left <= 0 }

// perCounts is the cost, in steps, to make or compare one count vector, which has a
// number for each kind.
func (s *search) perCounts() int { return 1 + len(s.kinds)/8 }

// place is a number of pods of each of a search's kinds on a node.
type place struct {
	node *node
	pods countVector
}

// answer is the result of a search: places, or that there are none, or that the budget
// is spent.
type answer struct {
	outcome Outcome
	places  []place
	// best is the most pods that have a place together, of a single kind without
	// rules; otherwise 0.
	best int
}
