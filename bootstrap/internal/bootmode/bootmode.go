// Package bootmode holds the ways to boot the discovery agent on a host.
package bootmode

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Data is the bootstrap data of a host.
type Data struct {
	Value []byte
	// Modified is when assisted-service last changed the source of the data, in the format of
	// assisted-service; "" if unknown.
	Modified string
}

// Mode is one way to boot the discovery agent.
type Mode interface {
	// Name returns the mode as users write it.
	Name() bootstrapv1.BootMode
	// Supports returns an error, with an action, if the infra machine cannot be booted in this mode.
	Supports(infraMachine *unstructured.Unstructured) error
	// Source returns the URL that hosts are booted from; "" if there is none yet.
	Source(image assisted.ImageStatus) string
	// BootImage returns the fields of the infra machine that make it boot from the source; nil if the mode
	// sets none.
	BootImage(infraMachine *unstructured.Unstructured, source string) *unstructured.Unstructured
	// UserData returns the bootstrap data of the host. caBundles hold certificates to trust in addition to
	// those of the system. An empty one is ignored.
	UserData(ctx context.Context, source string, caBundles ...[]byte) (Data, error)
	// UserDataFollowsSource reports whether the bootstrap data changes with the source.
	UserDataFollowsSource() bool
}

// Choose returns the name of the active mode: the mode that was latched when bootstrap data was handed out, or else the
// requested mode. Without both it is LiveISO if the image of the infra machine is a live ISO, and DiskImage
// otherwise.
func Choose(latched, requested bootstrapv1.BootMode, infraMachine *unstructured.Unstructured) (bootstrapv1.BootMode, error) {
	name := requested
	switch {
	case latched != "":
		name = latched
	case requested == "" && infraMachine.GetKind() == metal3.MachineKind && imageFormat(infraMachine) == liveISOFormat:
		name = bootstrapv1.BootModeLiveISO
	case requested == "":
		name = bootstrapv1.BootModeDiskImage
	}
	mode := Of(name)
	if err := mode.Supports(infraMachine); err != nil {
		return "", fmt.Errorf("boot mode %s: %w", mode.Name(), err)
	}
	return mode.Name(), nil
}

// Of returns the mode of a name.
func Of(name bootstrapv1.BootMode) Mode {
	if name == bootstrapv1.BootModeLiveISO {
		return LiveISO{}
	}
	return DiskImage{}
}
