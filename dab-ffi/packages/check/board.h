/* What dab-ffi/dist --check puts before the sample: text by semihosting. */
void say(const char *text);
#define SAY(text) say(text)
