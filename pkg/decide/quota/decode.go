package quota

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
)

// UnmarshalJSON reads quantities.
func (q *ResourceQuota) UnmarshalJSON(data []byte) error {
	fields, err := fieldsOf(data, "name", "nominalQuota", "borrowingLimit", "lendingLimit")
	if err != nil {
		return err
	}
	var read ResourceQuota
	var faults fault.List
	if raw, there := fields["name"]; !there || json.Unmarshal(raw, &read.Name) != nil {
		return fault.At("name", "want the name of a resource, such as nvidia.com/gpu")
	}
	nominal, err := amount(read.Name, fields["nominalQuota"])
	faults.Under("nominalQuota", err)
	if nominal != nil {
		read.Nominal = *nominal
	} else if err == nil {
		faults.Add("nominalQuota", "is missing; want an amount of %s, such as 8", read.Name)
	}
	read.BorrowingLimit, err = amount(read.Name, fields["borrowingLimit"])
	faults.Under("borrowingLimit", err)
	read.LendingLimit, err = amount(read.Name, fields["lendingLimit"])
	faults.Under("lendingLimit", err)
	if len(faults) == 0 {
		*q = read
	}
	return faults.Err()
}

// MarshalJSON writes quantities.
func (q ResourceQuota) MarshalJSON() ([]byte, error) {
	text := func(amount *int64) *string {
		if amount == nil {
			return nil
		}
		formatted := resource.Format(q.Name, *amount)
		return &formatted
	}
	return json.Marshal(struct {
		Name           resource.Name `json:"name"`
		NominalQuota   *string       `json:"nominalQuota"`
		BorrowingLimit *string       `json:"borrowingLimit,omitempty"`
		LendingLimit   *string       `json:"lendingLimit,omitempty"`
	}{q.Name, text(&q.Nominal), text(q.BorrowingLimit), text(q.LendingLimit)})
}

// UnmarshalJSON reads the weight, a quantity such as "0.5".
func (f *FairSharing) UnmarshalJSON(data []byte) error {
	fields, err := fieldsOf(data, "weight")
	if err != nil {
		return err
	}
	f.WeightMilli = defaultWeight
	weight, err := amount(resource.CPU, fields["weight"]) // thousandths, as of CPU
	if err != nil {
		return fault.At("weight", "%s: want a number that is not negative, such as 2 or 0.5", fields["weight"])
	}
	if weight != nil {
		f.WeightMilli = *weight
	}
	return nil
}

// MarshalJSON writes the weight as a quantity.
func (f FairSharing) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"weight": resource.Format(resource.CPU, f.WeightMilli)})
}

// defaultWeight is a weight of one.
const defaultWeight = 1000

// fieldsOf decodes a JSON object and refuses fields that are not known.
func fieldsOf(data []byte, known ...string) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fault.At("", "%s: want an object with %s", data, strings.Join(known, ", "))
	}
	var faults fault.List
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			faults.Add(fault.Key("", name), "there is no such field; want one of %s", strings.Join(known, ", "))
		}
	}
	return fields, faults.Err()
}

// amount reads a quantity, written as text or number; nil when there is none.
func amount(name resource.Name, raw json.RawMessage) (*int64, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, err
		}
	}
	parsed, err := resource.Parse(name, text)
	if err != nil {
		return nil, err
	}
	return &parsed, nil
}
