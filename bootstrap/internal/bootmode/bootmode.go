// Package bootmode knows the ways in which a host gets to run the discovery agent.
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
	// Modified is when assisted-service last changed what it was made from, in its own words; empty when it does not say.
	Modified string
}

// Mode is one way to boot the discovery agent.
type Mode interface {
	// Name is the mode as users write it.
	Name() bootstrapv1.BootMode
	// Supports returns an error that says what to change when the infrastructure machine cannot be booted in this mode.
	Supports(infraMachine *unstructured.Unstructured) error
	// Source returns the URL that hosts are booted from, empty while there is none.
	Source(image assisted.ImageStatus) string
	// BootImage returns the fields of the infrastructure machine that make it boot from the source; nil when it is not told so.
	BootImage(infraMachine *unstructured.Unstructured, source string) *unstructured.Unstructured
	// UserData returns the bootstrap data of the host. caBundle holds certificates to trust besides those of the system.
	UserData(ctx context.Context, source string, caBundle []byte) (Data, error)
	// UserDataFollowsSource reports whether the bootstrap data is another when the source is.
	UserDataFollowsSource() bool
}

// Choose returns the mode in force: the one that was latched when bootstrap data was handed out, else the one that the user asks for,
// else LiveISO where the image of the infrastructure machine is a live ISO, else DiskImage.
func Choose(latched, asked bootstrapv1.BootMode, infraMachine *unstructured.Unstructured) (Mode, error) {
	name := asked
	switch {
	case latched != "":
		name = latched
	case asked == "" && infraMachine.GetKind() == metal3.MachineKind && imageFormat(infraMachine) == liveISOFormat:
		name = bootstrapv1.BootModeLiveISO
	case asked == "":
		name = bootstrapv1.BootModeDiskImage
	}
	var mode Mode = DiskImage{}
	if name == bootstrapv1.BootModeLiveISO {
		mode = LiveISO{}
	}
	if err := mode.Supports(infraMachine); err != nil {
		return nil, fmt.Errorf("boot mode %s: %w", mode.Name(), err)
	}
	return mode, nil
}
