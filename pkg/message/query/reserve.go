package query

import (
	"encoding/json"
	"fmt"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/kueue"
)

// Reserve is the change of the configuration that makes a reservation, or replaces the one
// of its name.
func Reserve(r quota.Reservation) (ConfigureRequest, error) {
	name := r.Name
	r.Name = "" // it is in the metadata
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "muster.dev/v1beta1", "kind": kueue.Reservation, "metadata": map[string]string{"name": name}, "spec": r,
	})
	if err != nil {
		return ConfigureRequest{}, fmt.Errorf("write reservation %q: %w", name, err)
	}
	return ConfigureRequest{Apply: []json.RawMessage{manifest}}, nil
}

// Reservations returns the reservations among the applied objects.
func (a AppliedAnswer) Reservations() ([]quota.Reservation, error) {
	all := []quota.Reservation{}
	for _, o := range a.Objects {
		if o.Kind != kueue.Reservation {
			continue
		}
		object, err := kueue.ParseOne(o.Manifest)
		if err != nil {
			return nil, fmt.Errorf("read reservation %q as it is stored: %w", o.Name, err)
		}
		all = append(all, object.Policy.Reservations...)
	}
	return all, nil
}
