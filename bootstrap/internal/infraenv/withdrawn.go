package infraenv

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// registeredField is a field of an InfraEnv. assisted-service applies a change of the field only when it registers
// the InfraEnv.
type registeredField struct {
	path []string
	// name is the name for users; empty means the first element of path.
	name string
	// stays reports whether assisted-service keeps the registered value, or refuses the wanted value.
	stays func(registered, wanted *aiv1beta1.InfraEnvSpec) bool
	// stated reports whether a value is wanted, which replaces the value of any client; nil if no value is wanted.
	stated func(wanted *aiv1beta1.InfraEnvSpec) bool
	// keep sets in wanted the value that assisted-service keeps.
	keep func(registered, wanted *aiv1beta1.InfraEnvSpec)
}

// registeredFields are the fields of an InfraEnv that assisted-service changes only at a registration. The list
// was observed on the real service of April 2025 and read in the code of August 2026. In its
// infraenv_controller.go, updateInfraEnv passes on only what is stated. In its bminventory/inventory.go,
// updateInfraEnvData and updateInfraEnvNtpSources store no mirrors and no empty key.
var registeredFields = []registeredField{
	{ // assisted-service's webhook refuses another value
		path: []string{"cpuArchitecture"},
		stays: func(registered, wanted *aiv1beta1.InfraEnvSpec) bool {
			return cmp.Or(registered.CpuArchitecture, defaultArchitecture) != cmp.Or(wanted.CpuArchitecture, defaultArchitecture)
		},
		stated: func(wanted *aiv1beta1.InfraEnvSpec) bool { return wanted.CpuArchitecture != "" },
		keep:   func(registered, wanted *aiv1beta1.InfraEnvSpec) { wanted.CpuArchitecture = registered.CpuArchitecture },
	},
	{ // another value is read and checked, and not stored
		path: []string{"mirrorRegistryRef"},
		stays: func(registered, wanted *aiv1beta1.InfraEnvSpec) bool {
			return !equality.Semantic.DeepEqual(registered.MirrorRegistryRef, wanted.MirrorRegistryRef)
		},
		stated: func(wanted *aiv1beta1.InfraEnvSpec) bool { return wanted.MirrorRegistryRef != nil },
		keep: func(registered, wanted *aiv1beta1.InfraEnvSpec) {
			wanted.MirrorRegistryRef = registered.MirrorRegistryRef
		},
	},
	{ // for this and all following fields, a new value takes effect, and the absence of a value does not
		path: []string{"sshAuthorizedKey"},
		stays: func(registered, wanted *aiv1beta1.InfraEnvSpec) bool {
			return registered.SSHAuthorizedKey != "" && wanted.SSHAuthorizedKey == ""
		},
		keep: func(registered, wanted *aiv1beta1.InfraEnvSpec) {
			wanted.SSHAuthorizedKey = registered.SSHAuthorizedKey
		},
	},
	{
		path: []string{"ignitionConfigOverride"},
		stays: func(registered, wanted *aiv1beta1.InfraEnvSpec) bool {
			return registered.IgnitionConfigOverride != "" && wanted.IgnitionConfigOverride == ""
		},
		keep: func(registered, wanted *aiv1beta1.InfraEnvSpec) {
			wanted.IgnitionConfigOverride = registered.IgnitionConfigOverride
		},
	},
	{
		path: []string{"additionalNTPSources"},
		stays: func(registered, wanted *aiv1beta1.InfraEnvSpec) bool {
			return len(registered.AdditionalNTPSources) > 0 && len(wanted.AdditionalNTPSources) == 0
		},
		keep: keepTimeServers,
	},
	{
		// ntpSources of an InfraEnv that stated no time server are refused if the service has a time server of its own
		// (NTP_DEFAULT_SERVER). The service registered that server as additionalNTPSources, which exclude ntpSources
		// (RegisterInfraEnvInternal, updateInfraEnvNtpSources).
		path: []string{"ntpSources"},
		stays: func(registered, wanted *aiv1beta1.InfraEnvSpec) bool {
			return (len(registered.NTPSources) > 0) != (len(wanted.NTPSources) > 0)
		},
		stated: func(wanted *aiv1beta1.InfraEnvSpec) bool { return len(wanted.NTPSources) > 0 },
		keep:   keepTimeServers,
	},
	{
		path: []string{"networkDiscoveryDelaySeconds"},
		stays: func(registered, wanted *aiv1beta1.InfraEnvSpec) bool {
			return registered.NetworkDiscoveryDelaySeconds != nil && wanted.NetworkDiscoveryDelaySeconds == nil
		},
		keep: func(registered, wanted *aiv1beta1.InfraEnvSpec) {
			wanted.NetworkDiscoveryDelaySeconds = registered.NetworkDiscoveryDelaySeconds
		},
	},
	proxyField("httpProxy", func(p *aiv1beta1.Proxy) *string { return &p.HTTPProxy }),
	proxyField("httpsProxy", func(p *aiv1beta1.Proxy) *string { return &p.HTTPSProxy }),
	proxyField("noProxy", func(p *aiv1beta1.Proxy) *string { return &p.NoProxy }),
}

// defaultArchitecture is the architecture of an InfraEnv that states none.
const defaultArchitecture = "x86_64"

// keepTimeServers keeps both lists, because one excludes the other.
func keepTimeServers(registered, wanted *aiv1beta1.InfraEnvSpec) {
	wanted.NTPSources, wanted.AdditionalNTPSources = registered.NTPSources, registered.AdditionalNTPSources
}

func proxyField(name string, part func(*aiv1beta1.Proxy) *string) registeredField {
	return registeredField{
		path: []string{"proxy", name},
		stays: func(registered, wanted *aiv1beta1.InfraEnvSpec) bool {
			was, is := ptr.Deref(registered.Proxy, aiv1beta1.Proxy{}), ptr.Deref(wanted.Proxy, aiv1beta1.Proxy{})
			return *part(&was) != "" && *part(&is) == ""
		},
		keep: func(registered, wanted *aiv1beta1.InfraEnvSpec) {
			proxy := ptr.Deref(wanted.Proxy, aiv1beta1.Proxy{})
			*part(&proxy) = *part(registered.Proxy)
			wanted.Proxy = &proxy
		},
	}
}

// contentOfMirrors is no field: it represents a change of the content of the ConfigMap that mirrorRegistryRef
// names.
var contentOfMirrors = registeredField{path: []string{"mirrorRegistryRef"}, name: "content of the ConfigMap of mirrorRegistryRef"}

func (f registeredField) String() string { return cmp.Or(f.name, f.path[0]) }

// gatherMirrors reads the digest of the ConfigMap with the mirrors. assisted-service reads the ConfigMap at the
// registration of the InfraEnv, and stores nothing that it reads later (updateInfraEnvData).
func (i *Registrar) gatherMirrors(ctx context.Context, s *scope.Scope) error {
	ref := desired.MirrorRegistry(s.Facts)
	if ref == nil || s.WasInstalled() {
		return nil
	}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	metadata, err := kube.Read(ctx, i.metadata, key, kube.MetadataOf(kube.ConfigMap))
	if err != nil || metadata == nil {
		return err
	}
	s.MirrorsDigest, err = i.mirrors.Of(metadata, func(key client.ObjectKey) (string, error) {
		configMap := &corev1.ConfigMap{}
		if err := i.live.Get(ctx, key, configMap); err != nil {
			return "", fmt.Errorf("cannot read ConfigMap %s: %w", key, err)
		}
		return assisted.MirrorsDigest(configMap.Data), nil
	})
	return err
}

// reregister deletes an InfraEnv if assisted-service applies a change only at a registration. The InfraEnv is then
// created again. One example is the key of a user who must not log in anymore. Once the image was handed out, the
// deletion would be wrong: the host that boots the image could not register. The InfraEnv then keeps these fields,
// and reregister returns the name of the first one.
func (i *Registrar) reregister(ctx context.Context, s *scope.Scope, wanted *aiv1beta1.InfraEnv) (kept string, proceed bool, err error) {
	fields := i.staying(s.Namesake, wanted)
	switch {
	case len(fields) == 0:
		return "", true, nil
	case s.DataHandedOut() || s.HostChosen():
		for _, field := range fields {
			if field.keep != nil {
				field.keep(&s.Namesake.Spec, &wanted.Spec)
			}
		}
		keepMirrorsDigest(s.Namesake, wanted)
		return fields[0].String(), true, nil
	}
	mirrors := len(fields) == 1 && fields[0].name == contentOfMirrors.name
	if delay := i.recreations.Left(reconcile.Key("", s.Namesake)); mirrors && delay > 0 {
		return "", false, i.delayRecreation(ctx, s, wanted, delay)
	}
	if err := i.writer.Trials.TryCreate(ctx, &s.Again, wanted); err != nil {
		return "", false, infraEnvRefused(s, wanted.Name, err)
	}
	return "", false, i.recreateInfraEnv(ctx, s, fields, mirrors)
}

// keepMirrorsDigest states in wanted the digest of the mirrors that assisted-service has registered.
func keepMirrorsDigest(registered, wanted *aiv1beta1.InfraEnv) {
	if digest := registered.Annotations[bootstrapv1.MirrorsDigestAnnotation]; digest != "" {
		metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, bootstrapv1.MirrorsDigestAnnotation, digest)
	}
}

// delayRecreation keeps an InfraEnv of which only the content of its mirrors changed, and changed too often. Other
// changes are applied to the InfraEnv. Meanwhile no host boots.
func (i *Registrar) delayRecreation(ctx context.Context, s *scope.Scope, wanted *aiv1beta1.InfraEnv, delay time.Duration) error {
	s.Again.In(delay)
	s.Blockf(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.WaitingForDiscoveryImageReason,
		"InfraEnv %s is created again at %s: the %s changed again after a registration. Find the clients that change the ConfigMap, or revert "+
			"its content",
		s.Namesake.Name, i.clock.Now().Add(delay).UTC().Format(time.RFC3339), contentOfMirrors)
	keepMirrorsDigest(s.Namesake, wanted)
	_, err := i.applyInfraEnv(ctx, s, wanted)
	return err
}

// recreateInfraEnv deletes an InfraEnv, so that it is created again. If only the content of its mirrors changed, the
// deletion counts for the limited rate of such recreations.
func (i *Registrar) recreateInfraEnv(ctx context.Context, s *scope.Scope, fields []registeredField, mirrors bool) error {
	s.Blockf(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.WaitingForDiscoveryImageReason,
		"InfraEnv %s is being recreated: assisted-service would keep its %s, which the spec no longer has", s.Namesake.Name, fields[0])
	current, err := i.isCurrent(ctx, s)
	if err != nil {
		return err
	}
	if !current {
		s.Again.In(reconcile.CacheLag)
		return nil
	}
	if err := kube.Delete(ctx, i.client, s.Namesake); err != nil {
		return err
	}
	if mirrors {
		i.recreations.Record(reconcile.Key("", s.Namesake))
	}
	return nil
}

// staying returns the fields of an InfraEnv in which assisted-service would keep a value that is not wanted
// anymore. A value that another client states is left alone.
func (i *Registrar) staying(infraEnv, wanted *aiv1beta1.InfraEnv) []registeredField {
	if infraEnv == nil {
		return nil
	}
	staying := slices.DeleteFunc(slices.Clone(registeredFields), func(field registeredField) bool {
		stated := field.stated != nil && field.stated(&wanted.Spec)
		return !field.stays(&infraEnv.Spec, &wanted.Spec) || !stated &&
			!i.writer.Applier.Owns(infraEnv, slices.Concat([]string{"spec"}, field.path)...)
	})
	if assisted.OtherMirrors(infraEnv.Annotations[bootstrapv1.MirrorsDigestAnnotation],
		wanted.Annotations[bootstrapv1.MirrorsDigestAnnotation]) {
		staying = append(staying, contentOfMirrors)
	}
	return staying
}

// keptByBootedImage returns the name of a field that differs in the image of a booted host. It is empty if none differs,
// and once the host is installed.
func (i *Registrar) keptByBootedImage(s *scope.Scope) string {
	if s.BootModeProblem != "" || s.Namesake == nil || s.WasInstalled() {
		return ""
	}
	wanted, err := desired.InfraEnv(s.Facts)
	if err != nil {
		return ""
	}
	if fields := i.staying(s.Namesake, wanted); len(fields) > 0 {
		return fields[0].String()
	}
	return ""
}

// describeKept describes a field that did not reach the image before the image was handed out; empty if none.
func describeKept(s *scope.Scope, kept string) string {
	if kept == "" {
		return ""
	}
	return fmt.Sprintf("The published image has another %s. Revert the change, or delete Machine %s to get a host with the change, which "+
		"wipes what its host has installed by then", kept, s.Machine.Name)
}

// isCurrent reports whether the API server has the config as it was read. If an older config was read, the field
// may not be withdrawn at all, or the image may be handed out. The InfraEnv may also belong to another config of
// its name.
func (i *Registrar) isCurrent(ctx context.Context, s *scope.Scope) (bool, error) {
	now := &bootstrapv1.OpenshiftAssistedConfig{}
	there, err := kube.Exists(ctx, i.live, s.Stored, now)
	return there && now.ResourceVersion == s.Stored.ResourceVersion, err
}
