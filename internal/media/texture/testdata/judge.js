// judge decodes a compressed texture by WebGL 2. It takes base64 and returns base64 of RGBA in 32-bit floats, rows top
// down, or a text that names what is missing. Each pixel is fetched without filtering.
function judge(extension, format, width, height, blocks) {
  const gl = new OffscreenCanvas(1, 1).getContext("webgl2");
  if (!gl) return "no WebGL 2";
  if (!gl.getExtension("EXT_color_buffer_float")) return "no EXT_color_buffer_float";
  if (!gl.getExtension(extension)) return "no " + extension;

  const bytes = Uint8Array.from(atob(blocks), c => c.charCodeAt(0));
  gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
  gl.compressedTexImage2D(gl.TEXTURE_2D, 0, format, width, height, 0, bytes);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  if (gl.getError()) return "the texture is refused";

  const program = gl.createProgram();
  const shader = (type, text) => {
    const s = gl.createShader(type);
    gl.shaderSource(s, "#version 300 es\n" + text);
    gl.compileShader(s);
    gl.attachShader(program, s);
  };
  shader(gl.VERTEX_SHADER, `void main() { // one triangle over all
    gl_Position = vec4(gl_VertexID == 1 ? 3 : -1, gl_VertexID == 2 ? 3 : -1, 0, 1);
  }`);
  shader(gl.FRAGMENT_SHADER, `precision highp float;
    uniform highp sampler2D image;
    out vec4 pixel;
    void main() { pixel = texelFetch(image, ivec2(gl_FragCoord.xy), 0); }`);
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return "no program: " + gl.getProgramInfoLog(program);
  gl.useProgram(program);

  gl.bindRenderbuffer(gl.RENDERBUFFER, gl.createRenderbuffer());
  gl.renderbufferStorage(gl.RENDERBUFFER, gl.RGBA32F, width, height);
  gl.bindFramebuffer(gl.FRAMEBUFFER, gl.createFramebuffer());
  gl.framebufferRenderbuffer(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.RENDERBUFFER, gl.getParameter(gl.RENDERBUFFER_BINDING));
  gl.viewport(0, 0, width, height);
  gl.drawArrays(gl.TRIANGLES, 0, 3);
  const out = new Float32Array(4 * width * height);
  gl.readPixels(0, 0, width, height, gl.RGBA, gl.FLOAT, out);
  if (gl.getError()) return "reading failed";

  let text = "";
  const raw = new Uint8Array(out.buffer);
  for (let i = 0; i < raw.length; i += 8192) text += String.fromCharCode(...raw.subarray(i, i + 8192));
  gl.getExtension("WEBGL_lose_context")?.loseContext(); // a page has at most 16 contexts
  return btoa(text);
}
