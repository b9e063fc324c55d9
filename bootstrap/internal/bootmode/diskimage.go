package bootmode

import (
	"context"
	"fmt"

	ignitionconfig "github.com/coreos/ignition/v2/config"
	"github.com/dustin/go-humanize/english"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// DiskImage boots an RHCOS or SCOS disk image that the user chooses, with the discovery ignition as its user
// data.
type DiskImage struct{}

var _ Mode = DiskImage{}

// Name implements Mode.
func (DiskImage) Name() bootstrapv1.BootMode { return bootstrapv1.BootModeDiskImage }

// Supports implements Mode: every infrastructure provider passes user data to its hosts.
func (DiskImage) Supports(*unstructured.Unstructured) error { return nil }

// Source implements Mode.
func (DiskImage) Source(image assisted.ImageStatus) string { return image.IgnitionURL }

// BootImage implements Mode: the image is the user's.
func (DiskImage) BootImage(*unstructured.Unstructured, string) *unstructured.Unstructured { return nil }

// UserData implements Mode: it downloads the discovery ignition and validates it.
func (DiskImage) UserData(ctx context.Context, source string, caBundles ...[]byte) (Data, error) {
	data, err := downloadIgnition(ctx, source, caBundles...)
	if err != nil {
		return Data{}, err
	}
	if _, report, err := ignitionconfig.Parse(data.Value); err != nil || report.IsFatal() {
		// The report quotes the ignition, which holds the pull secret.
		return Data{}, fmt.Errorf("assisted-service serves no valid ignition config (%s)", english.Plural(len(data.Value), "byte", ""))
	}
	return data, nil
}

// UserDataFollowsSource implements Mode.
func (DiskImage) UserDataFollowsSource() bool { return true }
