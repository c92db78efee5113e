// Package types has what describes instances.
package types

// InstanceStateName is the state of an instance.
type InstanceStateName string

// InstanceStateNameRunning is that of one that runs.
const InstanceStateNameRunning InstanceStateName = "running"

// InstanceState is the state of an instance.
type InstanceState struct{ Name InstanceStateName }

// Instance is a machine.
type Instance struct {
	InstanceId, PrivateIpAddress *string
	State                        *InstanceState
}

// Reservation is a group of instances.
type Reservation struct{ Instances []Instance }
