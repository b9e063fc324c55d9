package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/blang/semver/v4"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/release"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// releaseVersions are the versions of a release, with the names of the fields that contain them.
type releaseVersions struct {
	DistributionVersion string `json:"distributionVersion"`
	// Version is the value of spec.version. It is empty if the kubelets report more than the release image states.
	Version string `json:"version,omitempty"`
	// KubernetesVersion is the version that the release image states.
	KubernetesVersion string `json:"kubernetesVersion"`
	Digest            string `json:"digest"`
	// ReleaseImage is the image by digest.
	ReleaseImage string `json:"releaseImage"`
}

// wantedRelease is a release image that the user names.
type wantedRelease struct {
	// version is nil if the user names an image.
	version *semver.Version
	image   string
}

// versionsOptions are the flags of the command versions.
type versionsOptions struct {
	pullSecret, pullSecretFile string
	architecture, repository   string
	authorities                string
}

func (p *plugin) versionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "versions (RELEASE | IMAGE)",
		Short: "Show the Kubernetes version of a release, which spec.version requires",
		Long: "Show the Kubernetes version of a release, which spec.version of a control plane and the topology of a Cluster require.\n" +
			"The command reads the release image from its registry. It does not read the registries.conf of a cluster: for a mirror,\n" +
			"name the image in the mirror, or set --repository. It uses the credentials of podman or docker for the registry, unless\n" +
			"a flag sets a pull secret.",
		Example: "  " + displayName + " versions 4.19.10\n" +
			"  " + displayName + " versions 4.19.10 --namespace lab --pull-secret pull-secret\n" +
			"  " + displayName + " versions mirror.lab.example:5000/ocp/release:4.19.10-x86_64 --registry-ca-file ca.pem",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o, out := versionsOptions{}, newOutput(cmd)
	cmd.Flags().StringVar(&o.pullSecret, "pull-secret", "", "Secret in the namespace that contains the credentials for the registry.")
	cmd.Flags().StringVar(&o.pullSecretFile, "pull-secret-file", "", "File that contains the credentials for the registry.")
	cmd.Flags().StringVar(&o.architecture, "architecture", "x86_64", "Architecture of the release: x86_64, arm64, ppc64le, s390x or multi.")
	cmd.Flags().StringVar(&o.repository, "repository", "", "Repository of the release images. Default: the repository of OpenShift or OKD.")
	cmd.Flags().StringVar(&o.authorities, "registry-ca-file", "", "PEM file with additional authorities for the certificate of the registry.")
	cmd.MarkFlagsMutuallyExclusive("pull-secret", "pull-secret-file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		found, err := p.versions(cmd.Context(), args[0], o)
		switch {
		case err != nil:
			return err
		case !out.isText():
			return out.write(p.streams.Out, "ReleaseVersions", found)
		}
		return p.writeVersions(found)
	}
	return cmd
}

// versions reads the versions of a release from its image.
func (p *plugin) versions(ctx context.Context, argument string, o versionsOptions) (*releaseVersions, error) {
	wanted, err := o.parse(argument)
	if err != nil {
		return nil, err
	}
	sources := release.Sources{}
	if sources.Authorities, err = readAuthorities(o.authorities); err != nil {
		return nil, err
	}
	credentials, err := p.registryCredentials(ctx, wanted.image, o)
	if err != nil {
		return nil, err
	}
	r, image := release.NewReader(release.NewUserTransport()), wanted.image
	if !strings.Contains(image, "@") {
		if image, err = r.Digest(ctx, image, sources, credentials); err != nil {
			return nil, registryError(ctx, wanted.image, credentials, err)
		}
	}
	contents, err := r.Contents(ctx, image, sources, credentials)
	if err != nil {
		return nil, registryError(ctx, wanted.image, credentials, err)
	}
	return wanted.versionsOf(image, contents)
}

// parse returns the release that an argument names: a release, or an image with its registry.
func (o *versionsOptions) parse(argument string) (*wantedRelease, error) {
	wanted := &wantedRelease{image: argument}
	if !strings.ContainsAny(argument, "/@:") {
		version, err := versions.ParseRelease(argument)
		if err != nil {
			return nil, err
		}
		wanted.version = &version
		wanted.image = versions.Image(version, o.architecture, o.repository,
			versions.Repositories{OCP: versions.DefaultOCPRepository, OKD: versions.DefaultOKDRepository})
	}
	// The error does not quote the image: a URL may contain a password.
	if _, err := name.ParseReference(wanted.image, name.StrictValidation); err != nil {
		return nil, errors.New("the release is neither a version such as 4.19.10, nor an image with registry, repository, and tag or digest")
	}
	return wanted, nil
}

// registryError returns the error of a registry, with an action.
func registryError(ctx context.Context, image string, credentials release.Credentials, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err = fmt.Errorf("cannot read release image %s: %w", bound.Value(image), err)
	var plain *release.NotEncryptedError
	switch {
	case errors.As(err, &plain):
		return fmt.Errorf("cannot read release image %s: %s does not speak TLS. The command sends no request over plain HTTP",
			bound.Value(image), plain.Registry)
	case !errors.Is(err, release.ErrRefused):
		return err
	case credentials.Cover(placeOf(image)):
		return fmt.Errorf("%w. Check the credentials, or set --pull-secret or --pull-secret-file", err)
	}
	return fmt.Errorf("%w. No credentials for the registry were found. Set --pull-secret or --pull-secret-file", err)
}

// placeOf returns the repository of an image, as pull secrets name it.
func placeOf(image string) string {
	ref, err := name.ParseReference(image)
	if err != nil {
		return image
	}
	return ref.Context().Name()
}

// versionsOf returns the versions of a release image. It returns an error if the image contradicts the request or itself.
func (w *wantedRelease) versionsOf(image string, contents release.Contents) (*releaseVersions, error) {
	stated, err := versions.ParseRelease(contents.Release)
	if err != nil {
		return nil, fmt.Errorf("release image %s states no release: %w", bound.Value(image), err)
	}
	if w.version != nil && w.version.String() != stated.String() {
		return nil, fmt.Errorf("image %s states release %s, not %s. Name another repository or the image of the release",
			bound.Value(w.image), stated, w.version)
	}
	if err := release.CheckKubernetes(stated, contents.Kubernetes); err != nil {
		return nil, fmt.Errorf("release image %s: %w", bound.Value(image), err)
	}
	_, digest, _ := strings.Cut(image, "@")
	found := &releaseVersions{
		DistributionVersion: stated.String(), KubernetesVersion: contents.Kubernetes, Version: contents.Kubernetes,
		Digest: digest, ReleaseImage: image,
	}
	if versions.KubeletsReportHash(stated) {
		found.Version = ""
	}
	return found, nil
}

// writeVersions writes the versions of a release as text.
func (p *plugin) writeVersions(v *releaseVersions) error {
	table := tabwriter.NewWriter(p.streams.Out, 0, 0, 2, ' ', 0)
	version := v.Version
	if version == "" {
		version = "not in the image (Kubernetes " + v.KubernetesVersion + ")"
	}
	_, err := fmt.Fprintf(table, "distributionVersion:\t%s\nversion:\t%s\nreleaseImage:\t%s\n", v.DistributionVersion, version, v.ReleaseImage)
	if err = errors.Join(err, table.Flush()); err != nil || v.Version != "" {
		return err
	}
	p.log("Kubelets of releases before 4.17 report a hash after the version (%s+HASH). Read the version from a Node of a cluster with "+
		"that release: kubectl get nodes", v.KubernetesVersion)
	return nil
}
