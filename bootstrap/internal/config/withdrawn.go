package config

import (
	"context"
	"slices"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// remembered are the fields of an InfraEnv that assisted-service remembers when they are stated no more: it takes over values, and not that there is none any more. What somebody else states there
// is his.
var remembered = []struct {
	path  []string
	empty func(*assisted.InfraEnvSpec) bool
}{
	{[]string{"sshAuthorizedKey"}, func(s *assisted.InfraEnvSpec) bool { return s.SSHAuthorizedKey == "" }},
	{[]string{"ignitionConfigOverride"}, func(s *assisted.InfraEnvSpec) bool { return s.IgnitionConfigOverride == "" }},
	{[]string{"additionalNTPSources"}, func(s *assisted.InfraEnvSpec) bool { return len(s.AdditionalNTPSources) == 0 }},
	{[]string{"proxy", "httpProxy"}, func(s *assisted.InfraEnvSpec) bool { return proxyOf(s).HTTPProxy == "" }},
	{[]string{"proxy", "httpsProxy"}, func(s *assisted.InfraEnvSpec) bool { return proxyOf(s).HTTPSProxy == "" }},
	{[]string{"proxy", "noProxy"}, func(s *assisted.InfraEnvSpec) bool { return proxyOf(s).NoProxy == "" }},
}

func proxyOf(spec *assisted.InfraEnvSpec) aiv1beta1.Proxy {
	if spec.Proxy == nil {
		return aiv1beta1.Proxy{}
	}
	return *spec.Proxy
}

// withdraw deletes an InfraEnv that states what is wanted no more and would be remembered, such as the key of somebody who is not to log in any more: it is made anew. Once the image was handed out that
// would be a wrong move: whoever has it, or is given it meanwhile, could not register.
func (r *Reconciler) withdraw(ctx context.Context, s *scope, wanted *assisted.InfraEnv) (bool, error) {
	if s.Namesake == nil || s.DataHandedOut() || s.HostChosen() {
		return true, nil
	}
	field := r.withdrawn(s.Namesake, wanted)
	if field == "" {
		return true, nil
	}
	_, _ = s.wait(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.WaitingForDiscoveryImageReason,
		"InfraEnv %s is made anew: assisted-service would keep its %s, which is not wanted any more", s.Namesake.Name, field)
	current, err := r.isCurrent(ctx, s)
	if err != nil {
		return false, err
	}
	if !current {
		s.again.In(reconcile.CacheLag)
		return false, nil
	}
	return false, kube.Delete(ctx, r.Client, s.Namesake)
}

// withdrawn names a field of an InfraEnv that we stated, that is wanted no more, and that would be remembered; empty: there is none.
func (r *Reconciler) withdrawn(infraEnv, wanted *assisted.InfraEnv) string {
	for _, field := range remembered {
		if field.empty(&wanted.Spec) && !field.empty(&infraEnv.Spec) && r.applier.Owns(infraEnv, slices.Concat([]string{"spec"}, field.path)...) {
			return field.path[0]
		}
	}
	return ""
}

// isCurrent tells whether the API server has the config as it was read. On one that is older the field may not be withdrawn at all, the image be handed out, or the InfraEnv be that of another config of
// its name.
func (r *Reconciler) isCurrent(ctx context.Context, s *scope) (bool, error) {
	now := &bootstrapv1.OpenshiftAssistedConfig{}
	there, err := kube.IsThere(ctx, r.Live, s.stored, now)
	return there && now.ResourceVersion == s.stored.ResourceVersion, err
}
