package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/follow"
	"muster.dev/muster/services/internal/client/output"
)

// print writes events until the last one that there is, or until ctx ends.
func (o *eventsOptions) print(ctx context.Context, following *bus.Following, out io.Writer) error {
	caughtUp := following.CaughtUp
	if o.follow {
		caughtUp = nil
	}
	var duplicates bus.Duplicates
	for {
		select {
		case <-ctx.Done():
			return nil // the user has seen enough
		case d := <-following.C:
			if duplicates.Seen(d) {
				continue
			}
			if err := o.printOne(d, out); err != nil {
				return err
			}
		case <-caughtUp:
			if len(following.C) == 0 {
				return nil
			}
		}
	}
}

// printAll writes events until there are no more.
func (o *eventsOptions) printAll(heard <-chan bus.Delivery, out io.Writer) error {
	for d := range heard {
		if err := o.printOne(d, out); err != nil {
			return err
		}
	}
	return nil
}

func (o *eventsOptions) printOne(d bus.Delivery, out io.Writer) error {
	step, err := follow.Read(d)
	if err == nil && o.elsewhere(&step.Record) {
		return nil
	}
	_, payload, _ := d.Event() // none of one that cannot be read
	line, shown := o.otherLine(payload)
	switch {
	case !shown:
		return nil
	case o.output.Data():
		return o.printData(d.Data, out)
	case err == nil:
		return printStep(step, out)
	}
	return printLine(d.Stored, cmp.Or(line, fmt.Sprintf("(cannot be shown: %v)", err)), out)
}

// otherLine is the line of an event that is not of a workload's life; empty for any other. An event of
// another namespace is not shown, and no cluster is of a namespace.
func (o *eventsOptions) otherLine(payload event.Payload) (line string, shown bool) {
	switch p := payload.(type) {
	case *event.RequestWaits:
		line = fmt.Sprintf("%-10s  workload %s: %s", p.Queue, p.Workload, p.Message)
	case *event.BudgetUsedUp:
		if o.namespace != "" && p.Namespace != "" && p.Namespace != o.namespace {
			return "", false
		}
		line = fmt.Sprintf("%-10s  %s", p.Queue, p.Message)
	case *event.ClusterChanged:
		if o.namespace != "" {
			return "", false
		}
		line = fmt.Sprintf("cluster %s is %s, was %s; workloads with places there: %d", p.Cluster, p.State, p.Was, p.Live)
	}
	return output.Cell(line), true
}

func printLine(at time.Time, line string, out io.Writer) error {
	_, err := fmt.Fprintf(out, "%s  %s\n", at.Local().Format(time.DateTime), line)
	return err
}

// elsewhere reports whether a workload is of another namespace than the chosen one. That of a
// rejected one is not known, unless it has the id of the chosen workload.
func (o *eventsOptions) elsewhere(r *workload.Record) bool {
	return o.namespace != "" && r.Namespace != o.namespace && !(r.Namespace == "" && o.workload != "")
}

// printStep writes a step as a line.
func printStep(step follow.Step, out io.Writer) error {
	r := &step.Record
	name := reference(r.Workload)
	if r.Name == "" {
		name = "workload " + string(r.ID)
	}
	line := fmt.Sprintf("%s  %-10s  %-10s  %s", step.At.Local().Format("2006-01-02 15:04:05.000"), r.Queue, output.Phase(r), name)
	if reason := output.Reason(r.Reason); reason != "" {
		line += "  " + reason
	}
	_, err := fmt.Fprintln(out, output.Cell(line))
	return err
}

// printData writes an event as it is: one line of JSON, a document of YAML, or what an expression finds in it.
func (o *eventsOptions) printData(data []byte, out io.Writer) error {
	var compact json.RawMessage
	if err := json.Unmarshal(data, &compact); err != nil {
		return fmt.Errorf("print an event: its data is not JSON: %w", err)
	}
	if o.output == output.JSON {
		return json.NewEncoder(out).Encode(compact)
	}
	if o.output == output.YAML {
		if _, err := fmt.Fprintln(out, "---"); err != nil {
			return err
		}
	}
	return output.Print(out, o.output, compact, nil)
}
