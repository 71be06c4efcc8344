package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/resource"
)

// LimitRange is what an object of this kind demands of the pods of its namespace. The API
// server refuses a pod that is beyond it.
type LimitRange struct {
	Name  string      `json:"name"`
	Items []LimitItem `json:"items"`
}

// LimitItem bounds each container, or with Pods what the containers of a pod ask for together.
type LimitItem struct {
	Pods bool          `json:"pods,omitempty"`
	Min  resource.List `json:"min,omitempty"`
	Max  resource.List `json:"max,omitempty"`
	// Ratio bounds the limit by a multiple of the request, in thousandths.
	Ratio resource.List `json:"ratio,omitempty"`
	// DefaultRequest and Default are the request and the limit of a container without one.
	DefaultRequest resource.List `json:"defaultRequest,omitempty"`
	Default        resource.List `json:"default,omitempty"`
}

// Amounts returns the number of amounts of the item.
func (i *LimitItem) Amounts() int {
	return len(i.Min) + len(i.Max) + len(i.Ratio) + len(i.DefaultRequest) + len(i.Default)
}

// SameRanges reports whether both demand the same.
func SameRanges(a, b []LimitRange) bool {
	return slices.EqualFunc(a, b, func(a, b LimitRange) bool {
		return a.Name == b.Name && slices.EqualFunc(a.Items, b.Items, func(a, b LimitItem) bool {
			return a.Pods == b.Pods && maps.Equal(a.Min, b.Min) && maps.Equal(a.Max, b.Max) && maps.Equal(a.Ratio, b.Ratio) &&
				maps.Equal(a.DefaultRequest, b.DefaultRequest) && maps.Equal(a.Default, b.Default)
		})
	})
}

// AmountsOf returns the number of amounts of all items.
func AmountsOf(ranges []LimitRange) int {
	amounts := 0
	for i := range ranges {
		for j := range ranges[i].Items {
			amounts += ranges[i].Items[j].Amounts()
		}
	}
	return amounts
}

// Bounds of the LimitRanges of a namespace that are reported: their number, their items, the
// amounts of an item, and those of all. Those of a namespace that has more are not known.
const (
	MostRanges           = 16
	MostRangeItems       = 8
	MostRangeAmounts     = 64
	MostNamespaceAmounts = 128
)

// mostCompared bounds what the containers of a gang ask for, see SizeOfAsks, because Beyond looks
// up each amount of the LimitRanges (MostNamespaceAmounts) for each container.
const mostCompared = 2048

// Beyond returns which bound of the LimitRanges the pods do not keep, so that the API server
// would refuse to create them; empty when they keep all, or when that is not known, as of a gang
// with very many containers.
func Beyond(sets []PodSet, ranges []LimitRange) string {
	size := 0
	for i := range sets {
		size += SizeOfAsks(sets[i].Template.Asks)
	}
	if len(ranges) == 0 || size > mostCompared {
		return ""
	}
	f := fillsOf(ranges)
	for i := range sets {
		if sets[i].Count <= 0 {
			continue
		}
		for _, pod := range sets[i].Template.Asks {
			if which, why := f.beyond(pod); why != "" {
				return fmt.Sprintf("%s of pod set %q %s", which, clipped(sets[i].Name), why)
			}
		}
	}
	return ""
}

// fills are what the API server gives to containers without a request or limit, and the bounds
// that it compares with then.
type fills struct {
	requests, limits resource.List
	limited          []resource.Name // the names in limits, sorted
	// unsure are the resources for which LimitRanges differ: the API server takes any.
	unsureRequests, unsureLimits map[resource.Name]bool
	containers, pods             []bound
}

// bound is an item of a LimitRange, with the names in its lists, sorted.
type bound struct {
	*LimitItem
	of, each                   string
	minNames, maxNames, ratios []resource.Name
}

func fillsOf(ranges []LimitRange) *fills {
	f := &fills{requests: resource.List{}, limits: resource.List{}, unsureRequests: map[resource.Name]bool{}, unsureLimits: map[resource.Name]bool{}}
	add := func(to resource.List, unsure map[resource.Name]bool, one resource.List) {
		for name, amount := range one {
			if known, there := to[name]; there && known != amount {
				unsure[name] = true
			}
			to[name] = amount
		}
	}
	for i := range ranges {
		requests, limits := resource.List{}, resource.List{} // the last item of a LimitRange counts
		for j := range ranges[i].Items {
			item := &ranges[i].Items[j]
			b := bound{item, ranges[i].Name, "a container", item.Min.Names(), item.Max.Names(), item.Ratio.Names()}
			if item.Pods {
				b.each = "a pod"
				f.pods = append(f.pods, b)
				continue
			}
			f.containers = append(f.containers, b)
			maps.Copy(requests, item.DefaultRequest)
			maps.Copy(limits, item.Default)
		}
		add(f.requests, f.unsureRequests, requests)
		add(f.limits, f.unsureLimits, limits)
	}
	f.limited = f.limits.Names()
	return f
}

// created are containers, one or all of a pod together, with what the API server has filled in.
type created struct {
	asks  []ContainerAsk
	fills *fills
}

// request returns what they ask for of a resource; limit returns their limit. known is false
// where it depends on which LimitRange the API server takes.
func (c created) request(name resource.Name) (amount int64, asks, known bool) {
	return c.sum(name, func(ask *ContainerAsk) resource.List { return ask.Requests }, c.fills.requests, c.fills.unsureRequests)
}

func (c created) limit(name resource.Name) (amount int64, limited, known bool) {
	return c.sum(name, func(ask *ContainerAsk) resource.List { return ask.Limits }, c.fills.limits, c.fills.unsureLimits)
}

func (c created) sum(name resource.Name, of func(*ContainerAsk) resource.List, fill resource.List, unsure map[resource.Name]bool) (amount int64, there, known bool) {
	known = true
	amount = podAsks(c.asks, func(ask *ContainerAsk) int64 {
		one, own := of(ask)[name]
		if !own {
			known = known && !unsure[name]
			one, own = fill[name]
		}
		there = there || own
		return one
	})
	return amount, there, known
}

// beyond returns which part of a pod does not keep a bound, and why.
func (f *fills) beyond(pod []ContainerAsk) (which, why string) {
	for i := range pod {
		one := created{pod[i : i+1], f}
		if why = one.beyondDefault(); why == "" {
			why = one.beyond(f.containers)
		}
		if why != "" {
			return fmt.Sprintf("container %q", clipped(pod[i].Name)), why
		}
	}
	return "a pod", created{pod, f}.beyond(f.pods)
}

// beyondDefault returns of which resource a container asks for more than the limit that it
// gets by default.
func (c created) beyondDefault() string {
	for _, name := range c.fills.limited {
		if _, own := c.asks[0].Limits[name]; own {
			continue
		}
		request, _, known := c.request(name)
		if limit := c.fills.limits[name]; known && !c.fills.unsureLimits[name] && request > limit {
			return fmt.Sprintf("asks for %s, and the LimitRanges of its namespace give it a limit of %s", amountOf(name, request), resource.Format(name, limit))
		}
	}
	return ""
}

// beyond compares as the admission plugin LimitRanger of the API server does.
func (c created) beyond(bounds []bound) string {
	for i := range bounds {
		b := &bounds[i]
		for _, compared := range []struct {
			names []resource.Name
			with  func(*bound, resource.Name, standing) string
		}{{b.minNames, (*bound).belowMin}, {b.maxNames, (*bound).aboveMax}, {b.ratios, (*bound).aboveRatio}} {
			for _, name := range compared.names {
				s, known := c.standing(name)
				if !known {
					continue
				}
				if why := compared.with(b, name, s); why != "" {
					return why
				}
			}
		}
	}
	return ""
}

// standing is what containers have of a resource.
type standing struct {
	request, limit int64
	asks, limited  bool
}

func (c created) standing(name resource.Name) (s standing, known bool) {
	var knownRequest, knownLimit bool
	s.request, s.asks, knownRequest = c.request(name)
	s.limit, s.limited, knownLimit = c.limit(name)
	return s, knownRequest && knownLimit
}

func (b *bound) belowMin(name resource.Name, s standing) (why string) {
	least := b.Min[name]
	switch {
	case !s.asks:
		why = "asks for no " + clipped(string(name))
	case s.request < least:
		why = "asks for " + amountOf(name, s.request)
	case s.limited && s.limit < least:
		why = "has a limit of " + amountOf(name, s.limit)
	default:
		return ""
	}
	return fmt.Sprintf("%s, and LimitRange %q demands at least %s of %s", why, clipped(b.of), resource.Format(name, least), b.each)
}

func (b *bound) aboveMax(name resource.Name, s standing) (why string) {
	most := b.Max[name]
	switch {
	case !s.limited:
		why = "has no limit of " + clipped(string(name))
	case s.limit > most:
		why = "has a limit of " + amountOf(name, s.limit)
	case s.request > most:
		why = "asks for " + amountOf(name, s.request)
	default:
		return ""
	}
	return fmt.Sprintf("%s, and LimitRange %q allows %s %s at most", why, clipped(b.of), b.each, resource.Format(name, most))
}

func (b *bound) aboveRatio(name resource.Name, s standing) (why string) {
	most := b.Ratio[name]
	switch {
	case s.request == 0:
		why = "asks for no " + clipped(string(name))
	case s.limit == 0:
		why = "has no limit of " + clipped(string(name))
	case float64(s.limit)/float64(s.request)*1000 > float64(most): // in floating point as the API server
		why = fmt.Sprintf("asks for %s with a limit of %s", amountOf(name, s.request), resource.Format(name, s.limit))
	default:
		return ""
	}
	return fmt.Sprintf("%s, and LimitRange %q allows %s a limit of %s times the request", why, clipped(b.of), b.each, resource.Format(resource.CPU, most))
}

func amountOf(name resource.Name, amount int64) string {
	return clipped(string(name)) + " " + resource.Format(name, amount)
}

// clipped bounds a name of a manifest or a cluster in a reason.
func clipped(name string) string {
	const most = 80
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "..."
}
