package appwrapper

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
)

// amountFields are the fields in which kinds of Kubernetes keep amounts, by
// resource or alone.
var amountFields = []string{
	"requests", "limits", "hard", "capacity", "overhead", "default", "defaultRequest", "max", "min", "maxLimitRequestRatio",
	"storage", "sizeLimit", "divisor",
}

// checkAmounts refuses quantities that would take long to parse or to add, in
// objects of all kinds: those that Muster passes on others would parse. What has
// the form of a number only is looked at; whether it may be there the API server
// knows.
func checkAmounts(where, field string, value any) error {
	amount := slices.Contains(amountFields, field)
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			within := key
			if amount && !isTree(v[key]) {
				within = field
			}
			if err := checkAmounts(where+"."+fault.Clip(key), within, v[key]); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range v {
			if err := checkAmounts(fmt.Sprintf("%s[%d]", where, i), "", item); err != nil {
				return err
			}
		}
	case string:
		if amount && numeric(v) && resource.Bounded(v) != nil {
			return unbounded(where, v)
		}
	case json.Number:
		if resource.Bounded(v.String()) != nil {
			return unbounded(where, v.String())
		}
	}
	return nil
}

func isTree(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// numeric reports whether the text begins as a number does.
func numeric(text string) bool {
	return text != "" && (text[0] >= '0' && text[0] <= '9' || text[0] == '+' || text[0] == '-' || text[0] == '.')
}

func unbounded(where, text string) error {
	return refuse(where, fault.Quote(text)+" is no quantity", `want a Kubernetes quantity such as "500m", "4" or "16Gi"`)
}
