package contract

import (
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// PreTerminateHooks are the annotations of a Machine by which somebody keeps its host as it is while it is being deleted, sorted.
func PreTerminateHooks(machine *clusterv1.Machine) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(machine.Annotations)), func(key string) bool {
		return !strings.HasPrefix(key, clusterv1.PreTerminateDeleteHookAnnotationPrefix)
	})
}
