// An OpenID provider for tests: oidc-provider, which is certified, with its own pages for logging in and agreeing.
//
// node provider.mjs PORT ACCESS_SECONDS ALGORITHM   (PORT 0: any; its URL is the one line on stdout)
//
// Whoever logs in as "ada:acme-corp:engineers,oncall" is ada, with the claims org and groups; any password will do.
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import Provider, { errors } from 'oidc-provider';

const [port, accessSeconds, algorithm] = [Number(process.argv[2] ?? 0), Number(process.argv[3] ?? 300), process.argv[4] ?? 'ES256'];
const API = 'https://pilotlight.test/api';

const KINDS = {
  RS256: ['rsa', { modulusLength: 2048 }],
  ES256: ['ec', { namedCurve: 'P-256' }],
  EdDSA: ['ed25519', {}],
};

function signingKey(alg) {
  const { privateKey } = generateKeyPairSync(...KINDS[alg]);
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: alg === 'EdDSA' ? 'Ed25519' : alg };
}

function claimsOf(id) {
  const [sub, org, groups] = id.split(':');
  return { sub, ...(org && { org }), ...(groups && { groups: groups.split(',') }) };
}

const server = createServer();
server.listen(port, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'pilotlight-cli',
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        redirect_uris: ['http://127.0.0.1/callback', 'http://127.0.0.1/ui/login/callback'],
        grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
        response_types: ['code'],
        id_token_signed_response_alg: algorithm,
      },
      {
        client_id: 'robot',
        client_secret: 'robots-secret',
        redirect_uris: [],
        response_types: [],
        grant_types: ['client_credentials'],
      },
    ],
    jwks: { keys: Object.keys(KINDS).map(signingKey) },
    cookies: { keys: [randomUUID()] },
    claims: { openid: ['sub', 'org', 'groups'] },
    conformIdTokenClaims: false,
    findAccount: (_, id) => ({ accountId: id, claims: async () => claimsOf(id) }),
    extraTokenClaims: (_, token) => (token.accountId ? { ...claimsOf(token.accountId), sub: undefined } : { org: 'acme-corp', groups: ['robots'] }),
    issueRefreshToken: async (_, client, code) => client.grantTypeAllowed('refresh_token') && code.scopes.has('offline_access'),
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256', 'EdDSA', 'Ed25519'] },
    features: {
      devInteractions: { enabled: true },
      deviceFlow: { enabled: true },
      clientCredentials: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, indicator) => {
          if (indicator !== API) throw new errors.InvalidTarget();
          return { scope: 'use', audience: API, accessTokenFormat: 'jwt', accessTokenTTL: accessSeconds, jwt: { sign: { alg: algorithm } } };
        },
      },
    },
    ttl: { AccessToken: accessSeconds, IdToken: accessSeconds, DeviceCode: 600, RefreshToken: 3600 },
  });
  server.on('request', provider.callback());
  console.log(issuer);
});
