package kubecontroller

// fairQueue orders objects round-robin by namespace, and by arrival within a namespace.
// So 10,000 objects of one tenant, or one that changes all day, delay another tenant's
// object by one turn. It is the queue inside client-go's work queue, which serializes
// all calls.
type fairQueue struct {
	waiting map[string][]Key // by namespace; none is empty
	order   []string         // the namespaces of waiting, the next one first
	number  int
}

func newFairQueue() *fairQueue { return &fairQueue{waiting: map[string][]Key{}} }

// Touch implements workqueue.Queue: a waiting object keeps its place.
func (t *fairQueue) Touch(Key) {}

// Push implements workqueue.Queue.
func (t *fairQueue) Push(key Key) {
	if len(t.waiting[key.Namespace]) == 0 {
		t.order = append(t.order, key.Namespace)
	}
	t.waiting[key.Namespace] = append(t.waiting[key.Namespace], key)
	t.number++
}

// Len implements workqueue.Queue.
func (t *fairQueue) Len() int { return t.number }

// Pop implements workqueue.Queue; the queue must not be empty.
func (t *fairQueue) Pop() Key {
	namespace := t.order[0]
	t.order = t.order[1:]
	first, rest := t.waiting[namespace][0], t.waiting[namespace][1:]
	t.waiting[namespace][0] = Key{}
	if len(rest) > 0 {
		t.waiting[namespace] = rest
		t.order = append(t.order, namespace)
	} else {
		delete(t.waiting, namespace)
	}
	t.number--
	return first
}
