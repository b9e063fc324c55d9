package contract

import (
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// PreTerminateHooks returns the pre-terminate hooks of a Machine, sorted. A client that sets such an
// annotation blocks the deletion of the infra machine.
func PreTerminateHooks(machine *clusterv1.Machine) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(machine.Annotations)), func(key string) bool {
		return !strings.HasPrefix(key, clusterv1.PreTerminateDeleteHookAnnotationPrefix)
	})
}
