package sim

import (
	"maps"
	"slices"
	"time"
)

// informer is a machine's watch of the API server: news of one thing after the
// other, late, with only the last of each thing, or everything again.
type informer struct {
	c      *cluster
	m      *machine
	life   int
	listed bool
	// see takes in the present state of a thing; list is called after everything has
	// been listed.
	see  func(key string)
	list func(keys []string)
}

func (c *cluster) watch(m *machine, see func(string), list func([]string)) {
	i := &informer{c: c, m: m, life: m.life, see: see, list: list}
	c.informers = slices.DeleteFunc(c.informers, func(i *informer) bool { return i.life != i.m.life })
	c.informers = append(c.informers, i)
	i.relist()
}

func (i *informer) current() bool { return i.life == i.m.life && !i.m.dead }

// relist reads everything again.
func (i *informer) relist() {
	w := i.c.w
	w.after(w.latency(), func() {
		switch {
		case !i.current():
		case !w.reaches(i.m, apiServer):
			w.after(time.Second, i.relist)
		default:
			keys := i.c.keys()
			w.after(w.net.arrives(i.m.name+"<watch"), func() { i.whenAwake(func() { i.listed = true; i.list(keys) }) })
		}
	})
}

// keys names all there is.
func (c *cluster) keys() []string {
	var keys []string
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		keys = append(keys, "node "+name)
	}
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		keys = append(keys, "object "+key)
	}
	for _, key := range slices.Sorted(maps.Keys(c.pods)) {
		keys = append(keys, "pod "+key)
	}
	return keys
}

func (i *informer) offer(key string) {
	w := i.c.w
	if !i.current() || !w.reaches(i.m, apiServer) {
		return // it lists when it is connected again
	}
	if w.nemesis.draw(i.m.name+" watches", Restarted) != "" {
		i.relist()
		return
	}
	if w.random.IntN(5) == 0 { // now and then a watch is late
		w.net.hold(i.m.name+"<watch", w.between(50*time.Millisecond, 2*time.Second))
	}
	w.after(w.net.arrives(i.m.name+"<watch"), func() {
		if i.listed {
			i.whenAwake(func() { i.see(key) })
		}
	})
}

func (i *informer) whenAwake(do func()) {
	if !i.current() {
		return
	}
	if rest := i.m.paused.Sub(i.c.w.now); rest > 0 {
		i.c.w.after(rest, func() { i.whenAwake(do) })
		return
	}
	do()
}
