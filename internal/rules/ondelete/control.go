package ondelete

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Control is the annotation keys.DaemonSetControl.
//
// Wire: tools read it.
type Control struct {
	// Partition is how many Pods stay old, as text.
	Partition string `json:"partition"`
	// Revision is the hash of the revision that the others are to be of, as in their label controller-revision-hash, so that no Pod is
	// deleted for a template that nobody has decided about.
	Revision string `json:"batch-revision"`
	// Paused stops where it is: no Pod is deleted.
	Paused bool `json:"paused,omitempty"`
}

// ParseControl reads the annotation.
func ParseControl(annotation string) (c Control, keep int32, err error) {
	if err := json.Unmarshal([]byte(annotation), &c); err != nil {
		return c, 0, fmt.Errorf("it is not JSON of the form {\"partition\":\"2\",\"batch-revision\":\"5d4c\"}: %w", err)
	}
	n, err := strconv.ParseInt(c.Partition, 10, 32)
	if err != nil || n < 0 {
		return c, 0, fmt.Errorf("partition %q is not a number of Pods, such as \"2\"", c.Partition)
	}
	return c, int32(n), nil
}

// String writes the annotation.
func (c Control) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and booleans can be written
	}
	return string(text)
}
