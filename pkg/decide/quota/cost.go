package quota

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Cost has what one unit of a resource costs in an hour, in thousandths of any currency: a
// core, a GiB of memory or storage, one of everything else. In JSON a price is a quantity,
// such as "2.5". What it does not name is free.
type Cost map[resource.Name]int64

// maxPrice bounds a price, so that costs of whole gangs can be compared: a million.
const maxPrice = 1_000_000_000

// UnmarshalJSON reads prices.
func (c *Cost) UnmarshalJSON(data []byte) error {
	var written map[resource.Name]json.RawMessage
	if err := json.Unmarshal(data, &written); err != nil {
		return fault.At("", "%s: want an object with prices by resource, such as {nvidia.com/gpu: \"2.5\"}", data)
	}
	read, err := costOf(written)
	*c = read
	return err
}

// ParseCost reads prices that are texts, such as "2.5", by resource.
func ParseCost(prices map[string]string) (Cost, error) {
	written := map[resource.Name]json.RawMessage{}
	for name, price := range prices {
		encoded, err := json.Marshal(price)
		if err != nil {
			return nil, fmt.Errorf("price %q of %s: %w", price, name, err)
		}
		written[resource.Name(name)] = encoded
	}
	return costOf(written)
}

func costOf(written map[resource.Name]json.RawMessage) (Cost, error) {
	read := Cost{}
	var faults fault.List
	for _, name := range slices.Sorted(maps.Keys(written)) {
		price, err := amount(resource.CPU, written[name]) // thousandths, as of CPU
		switch {
		case err != nil || price == nil || *price < 0 || *price > maxPrice:
			faults.Add(fault.Key("", string(name)), "%s: want a price from 0 to 1000000, such as 2.5", written[name])
		default:
			read[name] = *price
		}
	}
	return read, faults.Err()
}

// MarshalJSON writes prices as quantities.
func (c Cost) MarshalJSON() ([]byte, error) {
	written := map[resource.Name]string{}
	for name, price := range c {
		written[name] = resource.Format(resource.CPU, price)
	}
	return json.Marshal(written)
}

// Of returns what the pods cost in an hour, in thousandths, rounded down for each pod set
// and resource.
func (c Cost) Of(podSets []workload.PodSet) int64 {
	sum := int64(0)
	for name, price := range c {
		for _, set := range podSets {
			sum = add(sum, priceOf(name, set.Template.Requests[name], price, int64(set.Count)))
		}
	}
	return sum
}

// priceOf is exact up to a GiB and a core, and saturates: amounts of a manifest are bounded
// only by what fits into an int64.
func priceOf(name resource.Name, amount, price, pods int64) int64 {
	unit := int64(1)
	switch {
	case name == resource.CPU:
		unit = 1000
	case resource.InBytes(name):
		unit = 1 << 30
	}
	whole, part := amount/unit, amount%unit
	each := add(multiply(whole, price), part*price/unit) // part < 2^30, price <= 2^30
	return multiply(each, pods)
}

// multiply saturates.
func multiply(a, b int64) int64 {
	high, low := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

// maxPrices bounds the prices of a cluster or flavor.
const maxPrices = 100

func (v *validation) prices(path string, cost Cost) {
	if len(cost) > maxPrices {
		v.faults.Add(path+".costPerHour", "has %d prices; want at most %d", len(cost), maxPrices)
	}
	for _, name := range slices.Sorted(maps.Keys(cost)) {
		v.line(path+".costPerHour", string(name), maxSelectorText)
	}
}

// costOf is what charges cost in an hour at the prices of their flavors.
func (t *Tree) costOf(charges []Charge) int64 {
	sum := int64(0)
	for _, c := range charges {
		if f := t.flavors[c.Flavor]; f != nil {
			sum = add(sum, priceOf(c.Resource, c.Amount, f.Cost[c.Resource], 1))
		}
	}
	return sum
}
