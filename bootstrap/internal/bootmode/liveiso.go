package bootmode

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/ignition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// liveISOFormat is the image format with which the Bare Metal Operator boots an image as virtual media.
const liveISOFormat = "live-iso"

// LiveISO boots the InfraEnv's ISO, whose URL goes into the Metal3Machine.
type LiveISO struct{}

var _ Mode = LiveISO{}

// Name implements Mode.
func (LiveISO) Name() bootstrapv1.BootMode { return bootstrapv1.BootModeLiveISO }

// Supports implements Mode.
func (LiveISO) Supports(infraMachine *unstructured.Unstructured) error {
	if infraMachine.GetKind() != metal3.MachineKind {
		return fmt.Errorf("a %s cannot boot a live ISO: set spec.bootMode to %s", infraMachine.GetKind(), bootstrapv1.BootModeDiskImage)
	}
	return nil
}

// Source implements Mode.
func (LiveISO) Source(image assisted.ImageStatus) string { return image.ISOURL }

// BootImage implements Mode. The checksum of the image, which version v1beta2 of the API requires, comes from
// the user's template.
func (LiveISO) BootImage(infraMachine *unstructured.Unstructured, source string) *unstructured.Unstructured {
	desired := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"image": map[string]any{"url": source, formatField(infraMachine): liveISOFormat}},
	}}
	desired.SetGroupVersionKind(infraMachine.GroupVersionKind())
	desired.SetNamespace(infraMachine.GetNamespace())
	desired.SetName(infraMachine.GetName())
	return desired
}

// UserData implements Mode: the ISO holds everything, and the user data is an empty but valid ignition.
func (LiveISO) UserData(context.Context, string, ...[]byte) (Data, error) {
	return Data{Value: []byte(ignition.Empty)}, nil
}

// UserDataFollowsSource implements Mode.
func (LiveISO) UserDataFollowsSource() bool { return false }

// BootsFrom reports whether the infra machine boots the source as a live ISO.
func BootsFrom(infraMachine *unstructured.Unstructured, source string) bool {
	return BootImageURL(infraMachine) == source && imageFormat(infraMachine) == liveISOFormat
}

// BootImageURL returns the URL of the image that the infra machine boots.
func BootImageURL(infraMachine *unstructured.Unstructured) string {
	url, _, _ := unstructured.NestedString(infraMachine.Object, "spec", "image", "url")
	return url
}

// imageFormat returns the format of the image. Version v1beta2 of the infrastructure API renamed the field.
func imageFormat(infraMachine *unstructured.Unstructured) string {
	format, _, _ := unstructured.NestedString(infraMachine.Object, "spec", "image", formatField(infraMachine))
	return format
}

func formatField(infraMachine *unstructured.Unstructured) string {
	if strings.HasPrefix(infraMachine.GroupVersionKind().Version, "v1beta1") ||
		strings.HasPrefix(infraMachine.GroupVersionKind().Version, "v1alpha") {
		return "format"
	}
	return "diskFormat"
}
