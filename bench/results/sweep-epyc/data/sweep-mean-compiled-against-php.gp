set encoding utf8
set terminal pngcairo noenhanced size 1200,720
set output 'sweep-mean-compiled-against-php.png'
set title 'Compiled code against PHP: Mean latency over concurrency'
set xlabel 'concurrency'
set ylabel 'mean latency (ms)'
set xrange [0:*]
set yrange [0:*]
set grid
set samples 200
set key above
plot 'sweep-mean-compiled-against-php-worker.dat' using 1:2 with points pointtype 2 linecolor rgb '#d55e00' title 'Regent worker', \
     'sweep-mean-compiled-against-php-worker.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#d55e00' notitle, \
     'sweep-mean-compiled-against-php-classic.dat' using 1:2 with points pointtype 2 linecolor rgb '#0072b2' title 'Regent classic', \
     'sweep-mean-compiled-against-php-classic.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#0072b2' notitle, \
     'sweep-mean-compiled-against-php-native.dat' using 1:2 with points pointtype 2 linecolor rgb '#7b3fb0' title 'Regent native', \
     'sweep-mean-compiled-against-php-native.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#7b3fb0' notitle, \
     'sweep-mean-compiled-against-php-native-inline.dat' using 1:2 with points pointtype 2 linecolor rgb '#3f51c9' dashtype (10,3,2,3) title 'Regent native, inline', \
     'sweep-mean-compiled-against-php-native-inline.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#3f51c9' dashtype (10,3,2,3) notitle
