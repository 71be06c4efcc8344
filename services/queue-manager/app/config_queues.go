package app

import (
	"fmt"
	"os"

	"muster.dev/muster/pkg/policyfile/queuesfile"
	"muster.dev/muster/pkg/spec/fault"
)

// validateQueues reads the queues file, if there is one, and checks the queues and
// the policy.
func (c *Config) validateQueues() error {
	if c.QueuesFile != "" {
		file, notes, err := ReadQueues(c.QueuesFile)
		if err != nil {
			return err
		}
		c.Queues, c.Policy, c.notes = file.Queues, file.Config, notes
		return nil
	}
	if len(c.Queues) == 0 {
		c.Queues, c.builtIn = DefaultQueues(), true
	}
	file := queuesfile.File{Queues: c.Queues, Config: c.Policy}
	return file.Validate()
}

// ReadQueues reads a queues file. notes name what of it does nothing, or not what
// may have been meant.
func ReadQueues(path string) (file queuesfile.File, notes []string, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return queuesfile.File{}, nil, fmt.Errorf("queues: %w", err)
	}
	file, notes, err = queuesfile.Read(content)
	if err != nil {
		return queuesfile.File{}, nil, fault.Of(err).In(path)
	}
	return file, notes, nil
}
