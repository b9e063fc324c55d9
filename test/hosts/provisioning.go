package hosts

import (
	"context"
	"fmt"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// failures are the error types of failed tasks in the status.
var failures = map[Task]metal3api.ErrorType{
	Registering:    metal3api.RegistrationError,
	Inspecting:     metal3api.InspectionError,
	Preparing:      metal3api.PreparationError,
	Provisioning:   metal3api.ProvisioningError,
	Deprovisioning: metal3api.ProvisioningError,
	Powering:       metal3api.PowerManagementError,
}

// taskOf returns the task of the machine that precedes the next state of a BareMetalHost; empty: none. A
// BareMetalHost that is being deleted does not wait for tasks.
func taskOf(bmh *metal3api.BareMetalHost, host *Host) Task {
	status := &bmh.Status
	state := status.Provisioning.State
	switch {
	case state == metal3api.StateDeprovisioning:
		return Deprovisioning
	case detached(bmh) || bmh.DeletionTimestamp != nil:
		return ""
	case state == metal3api.StateRegistering:
		return Registering
	case state == metal3api.StateInspecting && !bmh.InspectionDisabled():
		return Inspecting
	case state == metal3api.StatePreparing:
		return Preparing
	case state == metal3api.StateProvisioning && bmh.Spec.Image != nil:
		return Provisioning
	case (state == metal3api.StateAvailable || state == metal3api.StateReady) && !bmh.NeedsProvisioning() &&
		status.PoweredOn != wantsPower(bmh),
		(state == metal3api.StateProvisioned && !otherImage(bmh) || state == metal3api.StateExternallyProvisioned) &&
			host.PoweredOn() != wantsPower(bmh):
		return Powering
	}
	return ""
}

// step does the work of the provisioning state of a BareMetalHost, and moves it on. It returns errors of the API
// only; problems of the BareMetalHost are written to its status.
func (o *operator) step(ctx context.Context, bmh *metal3api.BareMetalHost, host *Host) error {
	status := &bmh.Status
	if detached(bmh) {
		status.OperationalStatus = metal3api.OperationalStatusDetached
		if bmh.DeletionTimestamp != nil {
			status.Provisioning.State = metal3api.StateDeleting
		}
		return nil
	}
	if bmh.DeletionTimestamp != nil && startDeletion(status) {
		return nil
	}
	switch status.Provisioning.State {
	case metal3api.StateNone, metal3api.StateUnmanaged, metal3api.StateMatchProfile:
		manage(bmh)
	case metal3api.StateRegistering:
		return o.register(ctx, bmh, host)
	case metal3api.StateInspecting:
		inspect(bmh, host)
	case metal3api.StatePreparing:
		healthy(status)
		status.Provisioning.RootDeviceHints = bmh.Spec.RootDeviceHints.DeepCopy()
		status.Provisioning.BootMode = bmh.BootMode()
		status.Provisioning.State = metal3api.StateAvailable
	case metal3api.StateAvailable, metal3api.StateReady:
		available(bmh)
	case metal3api.StateProvisioning:
		return o.provision(ctx, bmh, host)
	case metal3api.StateProvisioned, metal3api.StateExternallyProvisioned:
		keep(bmh, host)
	case metal3api.StateDeprovisioning:
		host.deprovision(bmh.Spec.AutomatedCleaningMode != metal3api.CleaningModeDisabled)
		healthy(status)
		status.PoweredOn = false
		status.Provisioning.Image = metal3api.Image{}
		status.Provisioning.State = metal3api.StateAvailable
	case metal3api.StatePoweringOffBeforeDelete:
		status.PoweredOn = host.setPower(false)
		status.Provisioning.State = metal3api.StateDeleting
	case metal3api.StateDeleting:
	}
	return nil
}

// detached reports whether a host is detached, so that another controller manages it, and has reached a stable
// state.
func detached(bmh *metal3api.BareMetalHost) bool {
	if _, ok := bmh.Annotations[metal3api.DetachedAnnotation]; !ok {
		return false
	}
	switch bmh.Status.Provisioning.State {
	case metal3api.StateProvisioned, metal3api.StateExternallyProvisioned, metal3api.StateAvailable, metal3api.StateReady,
		metal3api.StateDeleting:
		return true
	}
	return false
}

// startDeletion starts the deletion of a BareMetalHost: deprovisioning if it has an image. It returns false if the
// deletion has started already.
func startDeletion(status *metal3api.BareMetalHostStatus) bool {
	switch status.Provisioning.State {
	case metal3api.StateDeprovisioning, metal3api.StatePoweringOffBeforeDelete, metal3api.StateDeleting:
		return false
	case metal3api.StateProvisioned, metal3api.StateProvisioning:
		status.Provisioning.State = metal3api.StateDeprovisioning
	default:
		status.Provisioning.State = metal3api.StatePoweringOffBeforeDelete
	}
	return true
}

// triesBeforeDelete is how often the deprovisioning of a BareMetalHost that is being deleted may fail before it
// is skipped (retryCount of the real operator, host_state_machine.go).
const triesBeforeDelete = 3

// abandon deletes a BareMetalHost without its deprovisioning if its BMC does not answer. Its server keeps its
// disk.
func skipDeprovisioning(bmh *metal3api.BareMetalHost) {
	if bmh.DeletionTimestamp != nil && bmh.Status.Provisioning.State == metal3api.StateDeprovisioning &&
		bmh.Status.ErrorCount > triesBeforeDelete {
		bmh.Status.Provisioning.State = metal3api.StateDeleting
	}
}

// manage starts with a BareMetalHost once it has the address of its BMC.
func manage(bmh *metal3api.BareMetalHost) {
	if !bmh.HasBMCDetails() {
		bmh.Status.OperationalStatus = metal3api.OperationalStatusDiscovered
		bmh.Status.Provisioning.State = metal3api.StateUnmanaged
		return
	}
	healthy(&bmh.Status)
	bmh.Status.Provisioning.State = metal3api.StateRegistering
}

// register checks the credentials of the BMC.
func (o *operator) register(ctx context.Context, bmh *metal3api.BareMetalHost, host *Host) error {
	secret := &corev1.Secret{}
	err := o.rack.reader.Get(ctx, bmh.CredentialsKey(), secret)
	switch {
	case apierrors.IsNotFound(err):
		broken(&bmh.Status, metal3api.RegistrationError, fmt.Sprintf("the BMC secret %s does not exist", bmh.CredentialsKey()))
		return nil
	case err != nil:
		return fmt.Errorf("cannot read the BMC secret: %w", err)
	case len(secret.Data["username"]) == 0 || len(secret.Data["password"]) == 0:
		broken(&bmh.Status, metal3api.RegistrationError, fmt.Sprintf("the BMC secret %s has no username or password", bmh.CredentialsKey()))
		return nil
	}
	healthy(&bmh.Status)
	bmh.UpdateTriedCredentials(*secret)
	bmh.UpdateGoodCredentials(*secret)
	bmh.Status.Provisioning.ID = host.Hardware().UUID
	bmh.Status.Provisioning.State = metal3api.StateInspecting
	if bmh.Spec.ExternallyProvisioned {
		bmh.Status.Provisioning.State = metal3api.StateExternallyProvisioned
	}
	return nil
}

// inspect reports the hardware. With inspection disabled, the hardware comes from an annotation, at any time, or
// is unknown.
func inspect(bmh *metal3api.BareMetalHost, host *Host) {
	if !bmh.InspectionDisabled() {
		bmh.Status.HardwareDetails = host.inspected().Details()
	}
	healthy(&bmh.Status)
	bmh.Status.HardwareProfile = "unknown"
	bmh.Status.Provisioning.State = metal3api.StatePreparing
}

// available waits for an image. The host runs the ramdisk of the Bare Metal Operator, which no test can see.
func available(bmh *metal3api.BareMetalHost) {
	healthy(&bmh.Status)
	bmh.Status.PoweredOn = wantsPower(bmh)
	if bmh.NeedsProvisioning() {
		bmh.Status.Provisioning.State = metal3api.StateProvisioning
	}
}

// provision boots the machine from the current image and user data of the BareMetalHost.
func (o *operator) provision(ctx context.Context, bmh *metal3api.BareMetalHost, host *Host) error {
	if bmh.Spec.Image == nil {
		bmh.Status.Provisioning.State = metal3api.StateDeprovisioning
		return nil
	}
	var userData []byte
	if bmh.Spec.UserData != nil {
		secret := &corev1.Secret{}
		err := o.rack.reader.Get(ctx, userDataKey(bmh), secret)
		if apierrors.IsNotFound(err) {
			broken(&bmh.Status, metal3api.ProvisioningError, fmt.Sprintf("the user data secret %s does not exist", userDataKey(bmh)))
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the user data: %w", err)
		}
		userData = firstOf(secret.Data, "userData", "value")
	}
	if failure := host.write(*bmh.Spec.Image, userData); failure != "" {
		broken(&bmh.Status, metal3api.ProvisioningError, failure)
		return nil
	}
	healthy(&bmh.Status)
	bmh.Status.PoweredOn = host.PoweredOn()
	bmh.Status.Provisioning.Image = *bmh.Spec.Image.DeepCopy()
	bmh.Status.Provisioning.State = metal3api.StateProvisioned
	return nil
}

// keep keeps a provisioned host at the wanted power, until its image is removed or replaced.
func keep(bmh *metal3api.BareMetalHost, host *Host) {
	if bmh.Status.Provisioning.State == metal3api.StateProvisioned && otherImage(bmh) {
		bmh.Status.Provisioning.State = metal3api.StateDeprovisioning
		return
	}
	healthy(&bmh.Status)
	bmh.Status.PoweredOn = host.setPower(wantsPower(bmh))
}

// otherImage reports whether the image of a BareMetalHost was removed, or replaced since it was provisioned.
func otherImage(bmh *metal3api.BareMetalHost) bool {
	return bmh.Spec.Image == nil || bmh.Spec.Image.URL != bmh.Status.Provisioning.Image.URL
}

func healthy(status *metal3api.BareMetalHostStatus) {
	status.OperationalStatus = metal3api.OperationalStatusOK
	status.ErrorType, status.ErrorMessage, status.ErrorCount = "", "", 0
}

// failed records that a task failed, at each attempt.
func failed(status *metal3api.BareMetalHostStatus, task Task, reason string) {
	status.OperationalStatus = metal3api.OperationalStatusError
	status.ErrorType, status.ErrorMessage = failures[task], reason
	status.ErrorCount++
}

// broken records an error once; the same error again changes nothing.
func broken(status *metal3api.BareMetalHostStatus, kind metal3api.ErrorType, message string) {
	if status.ErrorType == kind && status.ErrorMessage == message {
		return
	}
	status.OperationalStatus = metal3api.OperationalStatusError
	status.ErrorType, status.ErrorMessage = kind, message
	status.ErrorCount++
}

// firstOf returns the value of the first existing key.
func firstOf(data map[string][]byte, keys ...string) []byte {
	for _, key := range keys {
		if value, ok := data[key]; ok {
			return value
		}
	}
	return nil
}
