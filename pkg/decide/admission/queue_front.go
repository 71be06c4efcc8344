package admission

import "container/heap"

// foremost returns the first workloads in line, down to the depth of the queue. The caller does
// not change the list. It is kept until a workload comes, leaves or changes places, because it
// is asked for with each gang that is tried.
func (q *queue) foremost() []*Waiting {
	if q.front == nil {
		q.front = q.first(q.depth())
	}
	return q.front
}

// first returns the first workloads in line, at most that many. It walks the heaps from
// their tops, so that its cost depends on that number alone.
func (q *queue) first(most int) []*Waiting {
	if q.all.Len() == 0 || most == 1 {
		return q.heads()
	}
	front := frontHeap{queue: q, list: []frontPlace{{}}}
	var first []*Waiting
	for len(first) < most && len(front.list) > 0 {
		at := heap.Pop(&front).(frontPlace)
		first = append(first, front.of(at))
		for child := 2*at.member + 1; child <= 2*at.member+2 && child < q.all.list[at.class].Len(); child++ {
			heap.Push(&front, frontPlace{at.class, child})
		}
		for child := 2*at.class + 1; at.member == 0 && child <= 2*at.class+2 && child < q.all.Len(); child++ {
			heap.Push(&front, frontPlace{child, 0})
		}
	}
	return first
}

func (q *queue) heads() []*Waiting {
	if q.all.Len() == 0 {
		return nil
	}
	return []*Waiting{q.head()}
}

// frontPlace is a place in the heap of classes, and in the heap of the members of the class.
type frontPlace struct{ class, member int }

// frontHeap is a heap of places by the order of the queue.
type frontHeap struct {
	queue *queue
	list  []frontPlace
}

func (h *frontHeap) of(at frontPlace) *Waiting { return h.queue.all.list[at.class].members[at.member] }
func (h *frontHeap) Len() int                  { return len(h.list) }
func (h *frontHeap) Less(i, j int) bool {
	return h.queue.headOrder(h.of(h.list[i]), h.of(h.list[j])) < 0
}
func (h *frontHeap) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *frontHeap) Push(x any)    { h.list = append(h.list, x.(frontPlace)) }
func (h *frontHeap) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}
