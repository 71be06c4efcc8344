package quota

import (
	"math/bits"
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

// History is what a queue used in the past, decayed by the half-life: the
// average use with weights that halve with each half-life.
type History struct {
	At   time.Time     `json:"at"`
	Used resource.List `json:"used"`
}

// Advance adds the time since the last Advance to the past usage of all queues, with
// what they use now. It does nothing unless the configuration has a half-life.
func (t *Tree) Advance(now time.Time) {
	half := t.halfLife()
	if half == 0 {
		return
	}
	for _, q := range t.sorted {
		h := &q.node.history
		if h.At.IsZero() {
			h.At, h.Used = now, resource.List{}
			continue
		}
		passed := now.Sub(h.At)
		if passed <= 0 {
			continue
		}
		used := q.Used()
		for name := range used.Max(h.Used) {
			h.Used[name] = decayed(h.Used[name], passed, half) + used[name] - decayed(used[name], passed, half)
		}
		h.At = now
	}
}

func (t *Tree) halfLife() time.Duration {
	if f := t.config.FairSharing; f != nil && f.Enable {
		return time.Duration(f.UsageHalfLifeSeconds) * time.Second
	}
	return 0
}

// History returns the past usage of the queue, to be stored and restored by SetHistory.
func (q *Queue) History() History {
	return History{At: q.node.history.At, Used: q.node.history.Used.Clone()}
}

// SetHistory restores the past usage of the queue.
func (q *Queue) SetHistory(h History) {
	q.node.history = History{At: h.At, Used: h.Used.Clone()}
}

// past is the share of past use of a node, all queues below it together.
func (t *Tree) past(n *node) Share {
	if t.halfLife() == 0 || n.parent == nil {
		return 0
	}
	used := resource.List{}
	var visit func(n *node)
	visit = func(n *node) {
		used = used.Plus(n.history.Used)
		for _, child := range n.children {
			visit(child)
		}
	}
	visit(n)
	return t.weighted(n, used)
}

// decayed is amount * 2^(-passed/half), in integers only, so that it is the same on
// every machine: whole half-lives shift, the rest is multiplied by the powers 2^(-1/2),
// 2^(-1/4), ... that it consists of.
func decayed(amount int64, passed, half time.Duration) int64 {
	if amount <= 0 {
		return 0
	}
	whole := passed / half
	if whole >= 63 {
		return 0
	}
	value := uint64(amount)
	rest := uint64(passed % half)
	for _, root := range rootsOfHalf {
		rest *= 2
		if rest >= uint64(half) {
			rest -= uint64(half)
			value, _ = bits.Mul64(value, root)
		}
	}
	return int64(value >> uint(whole))
}

// rootsOfHalf are 2^(-1/2), 2^(-1/4), 2^(-1/8), ... times 2^64.
var rootsOfHalf = [...]uint64{
	0xb504f333f9de6484, 0xd744fccad69d6af4, 0xeac0c6e7dd24392e, 0xf5257d152486cc2c,
	0xfa83b2db722a033a, 0xfd3e0c0cf486c174, 0xfe9e115c7b8f884b, 0xff4ecb59511ec8a5,
	0xffa756521c8daed1, 0xffd3a751c0f7e10b,
}
