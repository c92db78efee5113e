package launch

import (
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// Wanted returns the launch priority of each container of the Pod, in their order; nothing when no order is asked for, which includes that
// all priorities are equal. The annotation goes before the variables: the containers [a, b, c] get 0, -1 and -2 by it. Init containers run
// one after the other anyway.
func Wanted(p *corev1.Pod) ([]int32, error) {
	containers := p.Spec.Containers
	if len(containers) < 2 {
		return nil, nil
	}
	priorities := make([]int32, len(containers))
	if p.Annotations[keys.ContainerLaunchPriority] == keys.ContainerLaunchOrdered {
		for i := range containers {
			priorities[i] = -int32(i)
		}
		return priorities, nil
	}
	differ := false
	for i := range containers {
		priority, err := asked(&containers[i])
		if err != nil {
			return nil, err
		}
		priorities[i] = priority
		differ = differ || priority != priorities[0]
	}
	if !differ {
		return nil, nil
	}
	return priorities, nil
}

// asked returns the priority that the user gave to a container; the last one, as for any variable that is given twice.
func asked(c *corev1.Container) (int32, error) {
	var priority int32
	for _, env := range c.Env {
		if env.Name != keys.ContainerPriorityEnv {
			continue
		}
		value, err := strconv.ParseInt(env.Value, 10, 32)
		switch {
		case env.ValueFrom != nil:
			return 0, fmt.Errorf("container %s takes %s from elsewhere: write the number itself as its value", c.Name, keys.ContainerPriorityEnv)
		case err != nil || value == math.MinInt32:
			return 0, fmt.Errorf("container %s has %s=%q: write a whole number from %d to %d", c.Name, keys.ContainerPriorityEnv, env.Value, -math.MaxInt32, math.MaxInt32)
		}
		priority = int32(value)
	}
	return priority, nil
}
