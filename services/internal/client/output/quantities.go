package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"muster.dev/muster/pkg/spec/resource"
)

// The members of an answer that hold amounts of resources. Answers have whole numbers in the
// base units of package resource; what people and scripts read has the quantities of
// Kubernetes.
var (
	// amountLists are objects of an amount for each resource.
	amountLists = map[string]bool{
		"requests": true, "reserved": true, "free": true, "allocatable": true, "unmanaged": true, "resources": true,
	}
	// moreAmounts stand next to a member "resource" that names what they are of.
	moreAmounts = map[string]bool{
		"asked": true, "available": true, "potential": true, "nominal": true, "used": true, "largest": true, "sum": true,
		"amount": true, "borrowed": true, "borrowingLimit": true, "lendingLimit": true,
	}
)

// verbatim are members that are not changed: `muster verify` reads a certificate as it was
// made, and a manifest has quantities of its own.
var verbatim = map[string]bool{"certificate": true, "manifest": true}

// encode returns the JSON of a value, with quantities. An event is what the stream has.
func encode(value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("print as JSON: %w", err)
	}
	if _, event := value.(json.RawMessage); event {
		return encoded, nil
	}
	return withQuantities(encoded)
}

// withQuantities returns JSON with the amounts of an answer as Kubernetes writes them: cpu
// "2" or "500m", memory "16Gi". The order of members stays.
func withQuantities(encoded []byte) ([]byte, error) {
	var out bytes.Buffer
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if err := (&quantities{in: decoder, out: &out}).value(""); err != nil {
		return nil, fmt.Errorf("write amounts as quantities: %w", err)
	}
	return out.Bytes(), nil
}

// quantities copies JSON and rewrites amounts.
type quantities struct {
	in  *json.Decoder
	out *bytes.Buffer
}

// member is a member of an object whose value has been written already.
type member struct {
	name  string
	value []byte
}

// value copies the value of a member with this name, or of an element of such a list.
func (q *quantities) value(name string) error {
	if verbatim[name] {
		var raw json.RawMessage
		if err := q.in.Decode(&raw); err != nil {
			return err
		}
		q.out.Write(raw)
		return nil
	}
	token, err := q.in.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return q.object(name)
	case json.Delim('['):
		return q.list(name)
	}
	return q.write(token)
}

func (q *quantities) list(name string) error {
	q.out.WriteByte('[')
	for i := 0; q.in.More(); i++ {
		if i > 0 {
			q.out.WriteByte(',')
		}
		if err := q.value(""); err != nil {
			return err
		}
	}
	q.out.WriteByte(']')
	_, err := q.in.Token()
	return err
}

func (q *quantities) object(name string) error {
	members, err := q.members()
	if err != nil {
		return err
	}
	of, known := resourceOf(members)
	q.out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			q.out.WriteByte(',')
		}
		if err := q.write(m.name); err != nil {
			return err
		}
		q.out.WriteByte(':')
		switch {
		case amountLists[name]:
			m.value = written(resource.Name(m.name), m.value)
		case known && moreAmounts[m.name]:
			m.value = written(of, m.value)
		}
		q.out.Write(m.value)
	}
	q.out.WriteByte('}')
	return nil
}

// members reads an object to its end.
func (q *quantities) members() (members []member, err error) {
	for q.in.More() {
		token, err := q.in.Token()
		if err != nil {
			return nil, err
		}
		name, is := token.(string)
		if !is {
			return nil, fmt.Errorf("the name of a member is %v", token)
		}
		var value bytes.Buffer
		if err := (&quantities{in: q.in, out: &value}).value(name); err != nil {
			return nil, err
		}
		members = append(members, member{name, value.Bytes()})
	}
	_, err = q.in.Token()
	return members, err
}

// resourceOf returns what a member "resource" names.
func resourceOf(members []member) (name resource.Name, known bool) {
	for _, m := range members {
		if m.name == "resource" && json.Unmarshal(m.value, &name) == nil && name != "" {
			return name, true
		}
	}
	return "", false
}

// written writes an amount as Kubernetes does; what is no whole number stays.
func written(name resource.Name, value []byte) []byte {
	var amount int64
	if err := json.Unmarshal(value, &amount); err != nil || bytes.Equal(value, []byte("null")) {
		return value
	}
	return []byte(`"` + quantity(name, amount) + `"`) // digits and a suffix
}

func (q *quantities) write(token any) error {
	encoder := json.NewEncoder(trimmed{q.out})
	return encoder.Encode(token)
}

// trimmed leaves out the end of line that an encoder adds.
type trimmed struct{ io.Writer }

func (t trimmed) Write(p []byte) (int, error) {
	_, err := t.Writer.Write(bytes.TrimSuffix(p, []byte("\n")))
	return len(p), err
}
