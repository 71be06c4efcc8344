package event

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// prototypes returns a zero value of every payload; the registry of types.
// Submit is not among them: its data is a manifest, not a JSON payload.
func prototypes() []Payload {
	return []Payload{
		&WorkloadSubmitted{}, &WorkloadRejected{}, &WorkloadChanged{}, &WorkloadCancel{}, &WorkloadRelease{}, &WorkloadMove{},
		&WorkloadHold{}, &WorkloadRequeue{}, &WorkloadPriority{}, &WorkloadCheckpoint{}, &RequestWaits{},
		&NodeObserved{}, &NodeRemoved{}, &NamespaceObserved{}, &CapacitySynced{}, &GangObserved{},
		&GangCommand{}, &GangStatus{}, &PermissionAsked{}, &PermissionGranted{}, &ReportWanted{}, &CheckWanted{}, &CheckAnswer{}, &DemandChanged{}, &BudgetUsedUp{}, &ClusterChanged{},
	}
}

// Types lists the type strings that Decode knows, sorted.
func Types() []string {
	var types []string
	for _, prototype := range prototypes() {
		types = append(types, prototype.EventType())
	}
	slices.Sort(types)
	return types
}

// Decode returns the payload of the envelope as a pointer to its Go type. Errors
// wrap ErrUnknownType or ErrMalformed.
func Decode(e Envelope) (Payload, error) {
	for _, prototype := range prototypes() {
		if prototype.EventType() != e.Type {
			continue
		}
		payload := reflect.New(reflect.TypeOf(prototype).Elem()).Interface().(Payload)
		if err := json.Unmarshal(e.Data, payload); err != nil {
			return nil, fmt.Errorf("%w: data of %s event %q: %w", ErrMalformed, e.Type, e.ID, err)
		}
		return payload, nil
	}
	return nil, fmt.Errorf("%w %q in event %q", ErrUnknownType, e.Type, e.ID)
}
