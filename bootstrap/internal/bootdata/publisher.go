// Package bootdata sets the boot image of a host and publishes its bootstrap data.
package bootdata

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostnetwork"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/protection"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Publisher publishes bootstrap data.
type Publisher struct {
	live      client.Reader
	metadata  client.Reader
	writer    *writer.Writer
	protector *protection.Protector
	clock     clock.Clock
	// authorities are the authorities that verify assisted-service for all hosts; nil if there are none.
	authorities *bootmode.Authorities
	// ignitions are the downloads of discovery ignitions. downloads spaces the attempts, which cannot be watched.
	ignitions *bootmode.Downloads
	downloads *reconcile.Backoff
	// wake triggers a reconcile of the configs whose ignition was downloaded.
	wake chan<- event.GenericEvent
	// digests are the digests of the last written sources of the data, by config.
	digests *reconcile.WriteCache[types.NamespacedName, string]
}

// New returns a Publisher. metadata reads the metadata of Secrets and ConfigMaps from the cache. authorities verify
// assisted-service for all hosts; nil if there are none. The Publisher sends to wake the configs whose ignition was
// downloaded.
func New(
	w *writer.Writer, metadata client.Reader, p *protection.Protector, authorities *bootmode.Authorities,
	wake chan<- event.GenericEvent, clk clock.Clock,
) *Publisher {
	return &Publisher{
		live: w.Live, metadata: metadata, writer: w, protector: p, authorities: authorities, clock: clk,
		ignitions: bootmode.NewDownloads(),
		downloads: reconcile.NewBackoff(clk, minDownloadDelay, maxDownloadDelay), wake: wake,
		digests: reconcile.NewWriteCache[types.NamespacedName, string](clk),
	}
}

// Forget drops the record of a deleted config.
func (d *Publisher) Forget(config types.NamespacedName) { d.digests.Forget(config) }

// DropDownload ends the download for a config.
func (d *Publisher) DropDownload(config types.NamespacedName) { d.ignitions.Drop(config) }

// Publish sets the boot image and then publishes the bootstrap data, strictly in this order. The infrastructure
// provider waits for the data, and a host must never boot the placeholder image of the user's template.
func (d *Publisher) Publish(ctx context.Context, s *scope.Scope) (bool, error) {
	const stage = bootstrapv1.DataSecretAvailableCondition
	if s.BootModeProblem != "" {
		return s.Block(stage, bootstrapv1.InvalidConfigurationReason, s.BootModeProblem), nil
	}
	mode := bootmode.Of(s.BootMode)
	// Nothing is written anymore for an approved host, which has its data.
	if dataSecretTaken(s) && s.ApprovedAgent() == nil {
		return waitForDataSecret(s), nil
	}
	if s.DataHandedOut() && s.HostChosen() && bootImageOutdated(s, mode) {
		return waitForAnotherMachine(s)
	}
	if s.DataHandedOut() && s.DataSecret != nil && s.HostChosen() {
		d.ignitions.Drop(s.Key()) // a download that ends now is too late
		return handOut(s, mode, s.HandedOut())
	}
	source := mode.Source(assisted.ObserveImage(s.InfraEnv))
	if source == "" {
		if s.DataHandedOut() && s.DataSecret != nil {
			return handOut(s, mode, s.HandedOut())
		}
		return s.Blockf(stage, bootstrapv1.DiscoveryImageUnavailableReason,
			"InfraEnv %s offers nothing to boot from in mode %s: check that assisted-service's image service is enabled", s.InfraEnv.Name,
			mode.Name()), nil
	}
	if proceed, err := d.bootImage(ctx, s, mode, source); !proceed {
		return proceed, err
	}
	if proceed, err := d.applyDataSecret(ctx, s, mode, source); !proceed {
		return proceed, err
	}
	if !withhold(s, mode) {
		return false, nil
	}
	if !s.DataHandedOut() {
		if err := d.protector.Set(ctx, s, true); err != nil {
			return false, err
		}
		s.Reactions = append(s.Reactions, measure.ReactionTo(measure.ImageReady, s.InfraEnv.Status.CreatedTime, d.clock.Now())...)
	}
	return handOut(s, mode, s.Config.Name)
}

// waitForDataSecret reports that the Secret with the name of the bootstrap data is foreign.
func waitForDataSecret(s *scope.Scope) (proceed bool) {
	otherwise := "Otherwise delete the Machine, which has no host yet, so nothing is wiped"
	if s.DataHandedOut() || s.HostChosen() {
		otherwise = "Deleting the Machine would wipe its host"
	}
	return s.Blockf(bootstrapv1.DataSecretAvailableCondition, bootstrapv1.InvalidConfigurationReason,
		"Secret %s exists and was not created by this provider. If nothing uses it, delete it: its content is lost. %s", s.DataSecret.Name,
		otherwise)
}

// Prepare writes, while assisted-service creates the image, everything that does not depend on the image. Once
// the image exists, two consecutive writes are left: the boot image, then the name of the data.
func (d *Publisher) Prepare(ctx context.Context, s *scope.Scope) error {
	mode := bootmode.Of(s.BootMode)
	if dataSecretTaken(s) || mode.UserDataFollowsSource() {
		return nil
	}
	if proceed, err := d.applyDataSecret(ctx, s, mode, ""); !proceed {
		return err
	}
	return d.protector.Set(ctx, s, true)
}

// bootImageOutdated reports whether the host received the image or ignition of an InfraEnv that assisted-service
// no longer has. Either the InfraEnv was created again, or the service lost its database. No service answers such
// a host, and the host gets no other image, because the host was chosen already. An unknown image is not outdated,
// nor is the image of a host that has booted.
//
// An Agent without inventory does not prove a boot, because such an Agent never gets an inventory. An InfraEnv
// leaves such an Agent behind if the InfraEnv is deleted while its host registers.
func bootImageOutdated(s *scope.Scope, mode bootmode.Mode) bool {
	if s.HostHasBooted() {
		return false
	}
	offered := assisted.InfraEnvIDOfURL(mode.Source(assisted.ObserveImage(s.InfraEnv)))
	booted := bootedInfraEnv(s, mode)
	return offered != "" && booted != "" && offered != booted
}

// bootedInfraEnv returns the ID of the InfraEnv whose image or ignition the host received; empty if unknown.
func bootedInfraEnv(s *scope.Scope, mode bootmode.Mode) string {
	switch {
	case mode.UserDataFollowsSource() && s.DataSecret != nil:
		return s.DataSecret.Annotations[desired.InfraEnvAnnotation]
	case mode.UserDataFollowsSource():
		return ""
	case s.Host != nil && s.Host.Spec.Image != nil:
		return assisted.InfraEnvIDOfURL(s.Host.Spec.Image.URL)
	}
	return assisted.InfraEnvIDOfURL(bootmode.BootImageURL(s.InfraMachine))
}

func waitForAnotherMachine(s *scope.Scope) (bool, error) {
	message := "the host booted a discovery image that assisted-service no longer knows, so it cannot register. Check on its console that " +
		"it does not run OpenShift, for example after a restore of this hub. If it does not, delete the Machine, which wipes the host; another " +
		"Machine replaces it"
	if s.Config.Status.AgentRef != nil {
		message = "the host booted a discovery image that assisted-service no longer knows, and its Agent was deleted. Check on its console " +
			"that it does not run OpenShift, for example after a restore of this hub. If it does not, delete the Machine, which wipes the host; " +
			"another Machine replaces it"
	}
	return s.Block(bootstrapv1.DataSecretAvailableCondition, bootstrapv1.BootImageOutdatedReason, message), nil
}

// bootImage makes the infrastructure machine boot the source, as long as its host is not chosen. CAPM3 1.13 copies
// the image to the BareMetalHost once, and a BareMetalHost is provisioned again when its image changes.
func (d *Publisher) bootImage(ctx context.Context, s *scope.Scope, mode bootmode.Mode, source string) (bool, error) {
	const stage = bootstrapv1.DataSecretAvailableCondition
	desired := mode.BootImage(s.InfraMachine, source)
	if desired == nil {
		return true, nil
	}
	observed := s.InfraMachine
	if !s.HostChosen() {
		changed, err := d.writer.Applier.Apply(ctx, desired, observed)
		if kube.IsRefused(err) {
			return d.writer.Refused(s, stage, bootstrapv1.BootImageRejectedReason, "%s %s cannot get the boot image: %s",
				observed.GetKind(), observed.GetName(), assisted.RedactURLs(err.Error())), nil
		}
		if err != nil {
			return false, withoutQuery(err)
		}
		d.writer.Accepted(stage, s.Config)
		if changed {
			observed = desired
		}
	}
	if s.DataHandedOut() || bootmode.BootsFrom(observed, source) {
		return true, nil
	}
	if s.HostChosen() {
		return s.Blockf(stage, bootstrapv1.BootImageRejectedReason,
			"a host was chosen for %s %s before its discovery image was set, so the host may boot a wrong image. To release the host, delete the "+
				"Machine, which wipes the host", observed.GetKind(), observed.GetName()), nil
	}
	return s.Blockf(stage, bootstrapv1.BootImageRejectedReason, "%s %s does not keep the boot image: find out which other client writes "+
		"spec.image",
		observed.GetKind(), observed.GetName()), nil
}

// redacted is an error whose text has no credentials of URLs. errors.As still finds the original error.
type redacted struct{ error }

// Error returns the text without the parts of URLs that may hold credentials.
func (e redacted) Error() string { return assisted.RedactURLs(e.error.Error()) }

// Unwrap returns the original error.
func (e redacted) Unwrap() error { return e.error }

// withoutQuery keeps credentials in URLs out of logs.
func withoutQuery(err error) error { return redacted{err} }

// handOut publishes the name of the bootstrap data Secret.
func handOut(s *scope.Scope, mode bootmode.Mode, secret string) (bool, error) {
	s.Status.DataSecretName = secret
	s.Status.Initialization.DataSecretCreated = ptr.To(true)
	s.Status.BootMode = mode.Name()
	mismatch := hostnetwork.Mismatch(s.Facts)
	warnOfNetworkMismatch(s, mismatch)
	s.Pass(bootstrapv1.DataSecretAvailableCondition, mismatch)
	return true, nil
}

// warnOfNetworkMismatch queues the Event once. The message of the recorded condition shows whether the Event was
// emitted.
func warnOfNetworkMismatch(s *scope.Scope, mismatch string) {
	recorded := s.Recorded(bootstrapv1.DataSecretAvailableCondition)
	if mismatch != "" && (recorded == nil || !strings.HasPrefix(recorded.Message, mismatch)) {
		s.StatusEvent(corev1.EventTypeWarning, "NMStateConfigMismatch", "%s", mismatch)
	}
}
