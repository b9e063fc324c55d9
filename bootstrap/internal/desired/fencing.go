package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// FencingAnnotation says from what the credentials are with which a host is fenced, as a digest of no secret: on a Secret it marks it as ours. assisted-service does not
// notice that a Secret changes; on an Agent it makes it look again.
const FencingAnnotation = "bootstrap.cluster.x-k8s.io/fencing-source"

// The keys of the Secret that an Agent names (assisted-service, updateHostFencingCredentials in its agent_controller.go, August 2026).
const (
	fencingAddress      = "address"
	fencingUsername     = "username"
	fencingPassword     = "password"
	fencingVerification = "certificateVerification"
)

// Whether the certificate of a BMC is verified.
const (
	verificationEnabled  = "Enabled"
	verificationDisabled = "Disabled"
)

// redfishAddress is an address that OpenShift's etcd operator can take apart when the hosts are installed (addressRegEx in its pkg/tnf/pkg/pcs/fencing.go, 2025).
var redfishAddress = regexp.MustCompile(`^[a-z][a-z0-9+-]*://[^/@?#]+:[0-9]+/redfish/[^?#]+$`)

// Fencing is how assisted-service learns the credentials of a host's BMC.
type Fencing struct {
	// Secret is what the Agent is told, Source what FencingAnnotation says of it.
	Secret, Source string
}

func unusable(format string, args ...any) *UserError {
	return &UserError{bootstrapv1.FencingCredentialsUnusableReason, fmt.Sprintf(format, args...)}
}

// byItsBMC is why a host has to have one.
const byItsBMC = "a node of a two-node cluster is fenced by its BMC"

// FencingFrom is the name of the Secret in which the credentials are: that which an annotation of the BareMetalHost names, which the user made for this, or that of its BMC.
func FencingFrom(f *facts.Facts) (name string, users bool, err error) {
	if f.Host == nil {
		return "", false, unusable("Machine %s has no BareMetalHost: %s", f.Machine.Name, byItsBMC)
	}
	if err := FencingProblem(f.Host); err != nil {
		return "", false, err
	}
	if named := f.Host.Annotations[metal3.FencingCredentialsAnnotation]; named != "" {
		return named, true, nil
	}
	return f.Host.Spec.BMC.CredentialsName, false, nil
}

// FencingProblem is what has to be corrected of a BareMetalHost before its host can be fenced, without a look at Secrets; nil: nothing.
func FencingProblem(host *metal3.Host) error {
	switch {
	case host.Annotations[metal3.FencingCredentialsAnnotation] != "":
		return nil
	case host.Spec.BMC.CredentialsName == "":
		return unusable("BareMetalHost %s has no spec.bmc.credentialsName: %s", host.Name, byItsBMC)
	}
	if _, err := metal3.RedfishAddress(host.Spec.BMC.Address); err != nil {
		return addressUnusable(host, err)
	}
	return nil
}

func addressUnusable(host *metal3.Host, why error) error {
	return unusable("spec.bmc.address of BareMetalHost %s, by which the other node fences it, %s. Or name a Secret with other credentials in its annotation %s", host.Name, why,
		metal3.FencingCredentialsAnnotation)
}

// FencingOf is what the Agent is told of a Secret that the user made for it.
func FencingOf(f *facts.Facts, secret *corev1.Secret) (Fencing, error) {
	named := fmt.Sprintf("Secret %s, which the annotation %s of BareMetalHost %s names", secret.Name, metal3.FencingCredentialsAnnotation, f.Host.Name)
	if !redfishAddress.Match(secret.Data[fencingAddress]) {
		return Fencing{}, unusable("%s: the key %s must be like redfish+https://bmc.example.com:443/redfish/v1/Systems/1, with port and path", named, fencingAddress)
	}
	for _, key := range []string{fencingUsername, fencingPassword} {
		if len(secret.Data[key]) == 0 {
			return Fencing{}, unusable("%s, has no key %s: add it", named, key)
		}
	}
	if !slices.Contains([]string{verificationEnabled, verificationDisabled}, string(secret.Data[fencingVerification])) {
		return Fencing{}, unusable("%s: the key %s must be %s or %s", named, fencingVerification, verificationEnabled, verificationDisabled)
	}
	return Fencing{Secret: secret.Name, Source: fencingSource(secret)}, nil
}

// FencingSecret is the Secret that is made of the address of the host's BMC and its credentials. It goes with the config, to which it belongs.
func FencingSecret(f *facts.Facts, credentials *corev1.Secret) (*corev1.Secret, error) {
	address, err := metal3.RedfishAddress(f.Host.Spec.BMC.Address)
	if err != nil {
		return nil, addressUnusable(f.Host, err)
	}
	for _, key := range []string{fencingUsername, fencingPassword} {
		if len(credentials.Data[key]) == 0 {
			return nil, unusable("Secret %s with the credentials of the BMC of BareMetalHost %s has no %s: add it", credentials.Name, f.Host.Name, key)
		}
	}
	verification := verificationEnabled
	if f.Host.Spec.BMC.DisableCertificateVerification {
		verification = verificationDisabled
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       f.Config.Namespace,
			Name:            f.FencingSecretName(),
			Labels:          map[string]string{clusterv1.ClusterNameLabel: f.Cluster.Name},
			Annotations:     map[string]string{FencingAnnotation: fencingSource(credentials, address, verification)},
			OwnerReferences: []metav1.OwnerReference{OwnerOf(f.Config)},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			fencingAddress: []byte(address), fencingVerification: []byte(verification),
			fencingUsername: credentials.Data[fencingUsername], fencingPassword: credentials.Data[fencingPassword],
		},
	}, nil
}

// fencingSource tells one version of a Secret, and what is taken along with it, from another. Nothing that is secret goes into it.
func fencingSource(secret metav1.Object, along ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append(along, string(secret.GetUID()), secret.GetResourceVersion()), "\n")))
	return hex.EncodeToString(sum[:8])
}
