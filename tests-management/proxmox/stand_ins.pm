# Fakes of the modules of Proxmox VE and CPAN that the plugin uses, as far as its calls need them.
# With these and Perl's own modules, the plugin runs anywhere. They do not support TLS, so the
# plugin uses HTTP on this machine.
use strict;
use warnings;

package Standing;

sub provide {
    my (%modules) = @_;
    for my $module ( keys %modules ) {
        ( my $path = $module ) =~ s{::}{/}g;
        $INC{"$path.pm"} = __FILE__;
        no strict 'refs';
        my $names = $modules{$module};
        *{"${module}::import"} = sub {
            my $caller = caller;
            *{"${caller}::$_"} = \&{"${module}::$_"} for @$names;
        };
    }
}

BEGIN {
    provide(
        'PVE::JSONSchema'      => [],
        'PVE::Network'         => [],
        'PVE::Tools'           => [qw(file_read_firstline run_command)],
        'PVE::INotify'         => [],
        'PVE::Storage::Plugin' => [],
        'Net::IP'              => [],
        'JSON::XS'             => [qw(decode_json encode_json)],
        'LWP::UserAgent'       => [],
        'HTTP::Headers'        => [],
        'HTTP::Request'        => [],
        'URI::Escape'          => [qw(uri_escape)],
    );
}

package PVE::INotify;
sub nodename { return 'pve' }

package PVE::Tools;
sub file_read_firstline { die "no file is read here\n" }
sub run_command         { die "no command is run here\n" }

package PVE::Storage::Plugin;
our @SHARED_STORAGE;

package JSON::XS;
use JSON::PP ();
sub decode_json { return JSON::PP::decode_json( $_[0] ) }
sub encode_json { return JSON::PP::encode_json( $_[0] ) }

package URI::Escape;

sub uri_escape {
    my ($text) = @_;
    $text =~ s/([^A-Za-z0-9\-._~])/sprintf '%%%02X', ord $1/ge;
    return $text;
}

package HTTP::Headers;
sub new {
    my ( $class, %fields ) = @_;
    return bless { map { lc($_) => $fields{$_} } keys %fields }, $class;
}

sub header {
    my ( $self, $name, $value ) = @_;
    $self->{ lc $name } = $value if defined $value;
    return $self->{ lc $name };
}

package HTTP::Request;
sub new { my ( $class, @parts ) = @_; return bless [@parts], $class }

package LWP::UserAgent;
use HTTP::Tiny ();
sub new      { return bless {}, shift }
sub ssl_opts { return }

sub request {
    my ( $self, $request ) = @_;
    my ( $method, $url, $headers, $content ) = @$request;
    my %options = ( headers => {%$headers} );
    $options{content} = $content if defined $content;
    return bless HTTP::Tiny->new->request( $method, $url, \%options ), 'HTTP::Response';
}

package HTTP::Response;
sub is_success      { return $_[0]->{success} }
sub code            { return $_[0]->{status} }
sub headers         { return HTTP::Headers->new( %{ $_[0]->{headers} } ) }
sub decoded_content { return $_[0]->{content} }

1;
